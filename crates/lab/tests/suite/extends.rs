//! Stack files that extend others: what is nearer wins, and errors name the file that they stand in.

use nandscape_ftl::FtlConfig;
use nandscape_ftl::pblk::config::Victim;
use nandscape_lab::stack::Stack;
use std::path::PathBuf;

const NONE: [&str; 0] = [];

/// A scratch folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Files extend files beside them, what is nearer wins, and errors name the file that they stand in.
#[test]
fn files_extend_files_and_shipped_stacks() {
    let folder = Folder::new("extends");
    folder.write("base.toml", "name = \"base\"\nextends = \"pblk\"\nftl.op_percent = 20\n");
    let top = folder.write("top.toml", "extends = \"base.toml\"\n[ftl.gc]\nvictim = \"fifo\"\n");
    let stack = Stack::load(&top, &NONE).unwrap();
    let FtlConfig::Pblk(config) = &stack.ftl else { panic!("a pblk") };
    assert_eq!((stack.name.as_str(), config.op_percent), ("base", Some(20)));
    assert_eq!(config.victim, Victim::Fifo);
    let base = folder.write("base.toml", "extends = \"pblk\"\nftl.op = 20\n");
    let found = Stack::load(&top, &NONE).unwrap_err().to_string();
    assert!(found.starts_with(&format!("{base}:2:5: ftl.op: unknown key")), "{found}");
}

/// A circle of `extends` ends in an error, not in a full stack.
#[test]
fn circles_and_missing_stacks_are_errors() {
    let folder = Folder::new("circle");
    let a = folder.write("a.toml", "extends = \"b.toml\"\n");
    let b = folder.write("b.toml", "\nextends = \"a.toml\"\n");
    let found = Stack::load(&a, &NONE).unwrap_err().to_string();
    assert!(found.starts_with(&format!("{b}:2:11: extends: circular extends: ")), "{found}");
    let lost = folder.write("lost.toml", "extends = \"pblkk\"\n");
    let found = Stack::load(&lost, &NONE).unwrap_err().to_string();
    assert!(
        found.starts_with(&format!("{lost}:1:11: extends: unknown stack \"pblkk\"")),
        "{found}"
    );
    assert!(found.ends_with("did you mean \"pblk\"?"), "{found}");
    let found = Stack::load("blk", &NONE).unwrap_err().to_string();
    assert!(found.starts_with("stack: unknown stack \"blk\""), "{found}");
}
