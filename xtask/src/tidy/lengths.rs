//! Files of at most 600 lines, functions of at most 70, from `fn` to the closing brace.

use super::source::words;
use super::tree::File;
use super::{Finding, Tree};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check_files(tree: &Tree) -> Vec<Finding> {
    let long = tree.rust().filter(|file| file.text.lines().count() > FILE_LINES_MAX);
    long.map(|file| {
        let lines = file.text.lines().count();
        let message = format!("{lines} lines, more than {FILE_LINES_MAX}: split it");
        Finding::at(file, 0, "file-length", message)
    })
    .collect()
}

pub(super) fn check_functions(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(long_functions).collect()
}

fn long_functions(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, name, body) in functions(&file.code) {
        let lines = 1 + file.line_of(body) - file.line_of(at);
        if lines > FUNCTION_LINES_MAX {
            let message = format!("`{name}` has {lines} lines, more than {FUNCTION_LINES_MAX}");
            findings.push(Finding::at(file, at, "function-length", message));
        }
    }
    findings
}

/// Each function with a name and a body: offset of `fn`, name, offset of the closing brace.
fn functions(code: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    let all: Vec<_> = words(code).collect();
    (1..all.len()).filter_map(move |i| {
        let ((at, keyword), (name_at, name)) = (all[i - 1], all[i]);
        let named = keyword == "fn" && code[at + 2..name_at].trim().is_empty();
        named.then(|| body_end(code, name_at)).flatten().map(|end| (at, name, end))
    })
}

/// The closing brace of the first body after `from`; none for a declaration that ends with `;`.
fn body_end(code: &str, from: usize) -> Option<usize> {
    let (mut parens, mut braces) = (0_usize, 0_usize);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => parens += 1,
            b')' | b']' => parens = parens.saturating_sub(1),
            b';' if parens == 0 && braces == 0 => return None,
            // A constant expression in the signature, as in `[u8; { N }]`, is no body.
            b'{' if parens == 0 || braces > 0 => braces += 1,
            b'}' if braces == 1 => return Some(at),
            b'}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        format!(
            "//! A.\nfn long(a: [u8; {{ 2 }}]) {{\n{}}}\nfn short() {{}}\n",
            "    a();\n".repeat(lines - 2)
        )
    }

    fn found(text: &str) -> Vec<String> {
        check_functions(&Tree::of(&[("a.rs", text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_long_file_is_caught() {
        let lines = |n: usize| format!("//! A.\n{}", "\n".repeat(n - 1));
        assert_eq!(check_files(&Tree::of(&[("a.rs", &lines(601))])).len(), 1);
        assert!(check_files(&Tree::of(&[("a.rs", &lines(600)), ("b.md", &lines(601))])).is_empty());
    }

    #[test]
    fn a_long_function_is_caught() {
        assert_eq!(
            found(&function_of(71)),
            ["a.rs:2: function-length: `long` has 71 lines, more than 70"]
        );
        assert!(found(&function_of(70)).is_empty());
    }

    /// A brace in a literal or comment must not hide where a function ends.
    #[test]
    fn braces_in_literals_do_not_count() {
        let text =
            function_of(71).replace("a();\n    a();", "a('{', \"{\"); // {\n    a(r#\"\"{\"#);");
        assert_eq!(found(&text).len(), 1);
        let text = function_of(60).replacen("a();", "a('{', \"{\");", 1) + &function_of(60);
        assert!(found(&text).is_empty());
    }

    #[test]
    fn declarations_and_pointers_have_no_body() {
        let text = "trait T { fn f(&self, x: [u8; 4]); }\ntype F = fn(u8) -> u8;\n";
        assert_eq!(functions(text).count(), 0);
        assert_eq!(functions("impl T { fn f() { g(|| { h() }) } }").count(), 1);
    }
}
