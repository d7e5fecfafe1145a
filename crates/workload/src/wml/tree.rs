//! The tree of a fileset: which directories and files it has and how large they are, without any I/O.
//!
//! After fileset.c. How deep files lie follows from their number and the mean width: depth =
//! ln(entries + leafdirs) / ln(dirwidth). Each directory draws its own depth and width, gamma
//! distributed; one that is as deep as its depth says holds files, others hold directories, and the
//! root goes on until there are enough files. Names are numbers from 1 within a directory, of eight
//! digits. Then files are taken at random, and each is there at the beginning with the probability
//! that `prealloc` says. Where a directory holds both files and empty directories, these are numbered behind
//! those (Filebench gives both the same names).

use super::model::{Fileset, Number};
use nandscape_rt::dist::Gamma;
use nandscape_rt::rng::Stream;
use std::collections::BTreeSet;
use thiserror::Error;

/// Directories below each other at most.
const DEPTH_MAX: u32 = 64;
/// Files and directories of a fileset at most.
const ENTRIES_MAX: u64 = 1 << 24;

/// Why there is no such tree.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
pub enum TreeError {
    /// More than fits.
    #[error("fileset {0}: more than {ENTRIES_MAX} files and directories")]
    TooMany(String),
    /// A chain of directories without end.
    #[error(
        "fileset {0}: its directories lie more than {DEPTH_MAX} deep; give it a larger dirwidth"
    )]
    TooDeep(String),
    /// No files and no directories.
    #[error("fileset {0}: its random number of entries came out as 0")]
    Empty(String),
}

/// A directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Directory {
    /// The one that it lies in; the first lies in the fileset's path.
    pub parent: u32,
    /// Its number there.
    pub serial: u32,
}

/// A file, or a directory that holds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The directory that it lies in.
    pub parent: u32,
    /// Its number there.
    pub serial: u32,
    /// Bytes; 0 of a directory.
    pub bytes: u64,
    /// Whether it is there at the beginning.
    pub exists: bool,
}

/// What a fileset is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct Tree {
    /// Directories that hold something, parents first. The first is the fileset's own.
    pub directories: Vec<Directory>,
    /// Files, in the order of their numbers.
    pub files: Vec<Leaf>,
    /// Empty directories, likewise.
    pub leafdirs: Vec<Leaf>,
    /// Files that are there at the beginning, in the order in which they are made.
    pub order: Vec<u32>,
    /// Directories between the root and a file, on average.
    pub mean_depth: f64,
}

/// The name of what has this number in its directory.
#[must_use]
pub fn leaf_name(serial: u32) -> String {
    format!("{serial:08}")
}

impl Tree {
    /// The tree of `fileset` in the run with this seed.
    ///
    /// # Errors
    /// A tree that would not end.
    pub fn new(fileset: &Fileset, seed: u64) -> Result<Self, TreeError> {
        let mut rng = Stream::new(seed, &format!("wml.fileset.{}", fileset.name));
        let entries = fileset.entries.draw(&mut rng);
        let leafdirs = fileset.leafdirs.draw(&mut rng);
        let all = entries.saturating_add(leafdirs);
        if all > ENTRIES_MAX {
            return Err(TreeError::TooMany(fileset.name.clone()));
        }
        if all == 0 {
            return Err(TreeError::Empty(fileset.name.clone()));
        }
        let shape = Shape::new(fileset, all, &mut rng);
        let mean_depth = shape.mean_depth;
        let tree = Self {
            directories: Vec::new(),
            files: Vec::with_capacity(entries as usize),
            leafdirs: Vec::with_capacity(leafdirs as usize),
            order: Vec::new(),
            mean_depth,
        };
        let mut growth = Growth { fileset, shape, tree, entries, leafdirs, rng };
        growth.directory(0, 1, 0)?;
        let Growth { mut tree, mut rng, .. } = growth;
        tree.choose(fileset.prealloc_percent, &mut rng);
        Ok(tree)
    }

    /// Bytes of all files, there or not.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Says which files and empty directories are there at the beginning.
    fn choose(&mut self, percent: u64, rng: &mut Stream) {
        let share = percent as f64 / 100.0;
        let mut left: BTreeSet<u32> = (0..self.files.len() as u32).collect();
        while !left.is_empty() {
            let drawn = rng.below(self.files.len() as u64) as u32;
            let Some(at) = left.range(drawn..).chain(&left).next().copied() else { break };
            left.remove(&at);
            if rng.chance(share) {
                self.files[at as usize].exists = true;
                self.order.push(at);
            }
        }
        for leafdir in &mut self.leafdirs {
            leafdir.exists = rng.chance(share);
        }
    }
}

/// How deep and how wide directories are.
struct Shape {
    mean_depth: f64,
    /// `None`: drawn anew for each directory.
    mean_width: Option<f64>,
    dirgamma: f64,
}

impl Shape {
    fn new(fileset: &Fileset, all: u64, rng: &mut Stream) -> Self {
        let own_mean = match &fileset.dirwidth {
            Number::Drawn(random) => random.mean(),
            Number::Fixed(_) => None,
        };
        let width = own_mean.unwrap_or_else(|| fileset.dirwidth.draw(rng) as f64).max(2.0);
        let mean_depth = libm::log(all as f64) / libm::log(width);
        let mean_width = own_mean.is_none().then_some(width);
        Self { mean_depth, mean_width, dirgamma: fileset.dirgamma }
    }

    fn depth(&self, fileset: &Fileset, rng: &mut Stream) -> u64 {
        let depth = match &fileset.dirdepth {
            Some(random) => random.with_mean(self.mean_depth).sample(rng),
            None => self.spread(self.mean_depth, rng),
        };
        (depth as u64).max(1)
    }

    fn width(&self, fileset: &Fileset, rng: &mut Stream) -> f64 {
        let width = match self.mean_width {
            Some(mean) => self.spread(mean, rng),
            None => fileset.dirwidth.draw_real(rng),
        };
        if width > 0.0 { width } else { 1.0 }
    }

    /// Around a mean, as `dirgamma` says.
    fn spread(&self, mean: f64, rng: &mut Stream) -> f64 {
        Gamma::new(self.dirgamma, mean / self.dirgamma).map_or(mean, |gamma| gamma.sample(rng))
    }
}

/// A tree that grows.
struct Growth<'a> {
    fileset: &'a Fileset,
    shape: Shape,
    tree: Tree,
    entries: u64,
    leafdirs: u64,
    rng: Stream,
}

impl Growth<'_> {
    /// Adds a directory with all that is in it. `above` are the directories that it lies in.
    fn directory(&mut self, parent: u32, serial: u32, above: u32) -> Result<(), TreeError> {
        if above >= DEPTH_MAX {
            return Err(TreeError::TooDeep(self.fileset.name.clone()));
        }
        if self.tree.directories.len() as u64 >= ENTRIES_MAX {
            return Err(TreeError::TooMany(self.fileset.name.clone()));
        }
        let is_root = above == 0;
        let this = self.tree.directories.len() as u32;
        self.tree.directories.push(Directory { parent, serial });
        let depth = self.shape.depth(self.fileset, &mut self.rng);
        let width = self.shape.width(self.fileset, &mut self.rng);
        let holds_leaves = !is_root && u64::from(above) + 1 >= depth;
        let is_full = |held: u32| !is_root && f64::from(held) >= width;
        let mut serial = 0;
        for leaves in [Leaves::Files, Leaves::Directories] {
            let mut held = 0;
            while !is_full(held) && self.wants(leaves) {
                (held, serial) = (held + 1, serial + 1);
                match holds_leaves {
                    true => self.leaf(leaves, this, serial),
                    false => self.directory(this, serial, above + 1)?,
                }
            }
        }
        Ok(())
    }

    fn wants(&self, leaves: Leaves) -> bool {
        match leaves {
            Leaves::Files => (self.tree.files.len() as u64) < self.entries,
            Leaves::Directories => (self.tree.leafdirs.len() as u64) < self.leafdirs,
        }
    }

    fn leaf(&mut self, leaves: Leaves, parent: u32, serial: u32) {
        let mut leaf = Leaf { parent, serial, bytes: 0, exists: false };
        match leaves {
            Leaves::Files => {
                leaf.bytes = self.fileset.size.draw(&mut self.rng);
                self.tree.files.push(leaf);
            }
            Leaves::Directories => self.tree.leafdirs.push(leaf),
        }
    }
}

/// What a directory may hold at the ends of the tree.
#[derive(Clone, Copy)]
enum Leaves {
    Files,
    Directories,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(attributes: &str) -> Tree {
        let text = format!(
            "define fileset name=a,path=/t,{attributes}\n\
             define process name=p {{ thread name=t {{ flowop delay name=d }} }}"
        );
        let workload = crate::wml::parse(&text, "t.f", &[]).unwrap();
        Tree::new(&workload.filesets[0], 1).unwrap()
    }

    fn depth(tree: &Tree, mut directory: u32) -> u32 {
        let mut depth = 1;
        while directory != 0 {
            directory = tree.directories[directory as usize].parent;
            depth += 1;
        }
        depth
    }

    /// Without a spread, directories are as wide and as deep as was asked for.
    #[test]
    fn a_tree_without_spread_is_even() {
        let tree = tree("entries=10000,dirwidth=20,dirgamma=0,size=4k");
        assert!((tree.mean_depth - 3.07).abs() < 0.01);
        assert!(tree.files.iter().all(|file| depth(&tree, file.parent) == 3));
        assert_eq!(tree.directories.len(), 1 + 25 + 500);
    }

    /// As many files as were asked for, in directories about as wide as was asked for; branches that
    /// happen to be deep hold most.
    #[test]
    fn a_tree_has_the_shape_that_was_asked_for() {
        let tree = tree("entries=20000,dirwidth=20,size=4k,prealloc=80");
        assert_eq!(tree.files.len(), 20_000);
        assert!(tree.files.iter().all(|file| depth(&tree, file.parent) > 1), "none in the root");
        let holders: BTreeSet<u32> = tree.files.iter().map(|file| file.parent).collect();
        let width = 20_000.0 / holders.len() as f64;
        assert!((15.0..26.0).contains(&width), "{width}");
        let there = tree.files.iter().filter(|file| file.exists).count();
        assert_eq!(there, tree.order.len());
        assert!((15_700..16_300).contains(&there), "{there}");
    }

    /// Numbers are those of the directory, from 1, and no two are alike.
    #[test]
    fn names_are_unique() {
        let tree = tree("entries=500,leafdirs=300,dirwidth=7,size=1k,prealloc");
        let mut seen = BTreeSet::new();
        for leaf in tree.files.iter().chain(&tree.leafdirs) {
            assert!(leaf.serial > 0 && seen.insert((leaf.parent, leaf.serial)));
        }
        for directory in tree.directories.iter().skip(1) {
            assert!(seen.insert((directory.parent, directory.serial)));
        }
        assert_eq!((tree.files.len(), tree.leafdirs.len()), (500, 300));
        assert!(tree.files.iter().chain(&tree.leafdirs).all(|leaf| leaf.exists));
        assert_eq!(leaf_name(12), "00000012");
    }

    /// One wide directory holds everything, below the root; a single file lies there too.
    #[test]
    fn a_wide_directory_holds_all() {
        let tree = tree("entries=1000,dirwidth=1000000,size=1k");
        assert_eq!(tree.directories.len(), 2);
        assert!(tree.files.iter().enumerate().all(|(i, file)| file.serial == i as u32 + 1));
        assert!(tree.order.is_empty(), "nothing is made without prealloc");
    }

    /// Sizes are drawn; the same seed draws the same tree, another one another.
    #[test]
    fn sizes_are_drawn() {
        let text = "set $s=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)\n\
                    define fileset name=a,path=/t,entries=10000,dirwidth=20,size=$s,prealloc=100\n\
                    define process name=p { thread name=t { flowop delay name=d } }";
        let fileset = &crate::wml::parse(text, "t.f", &[]).unwrap().filesets[0];
        let tree = Tree::new(fileset, 1).unwrap();
        let mean = tree.bytes() as f64 / 10_000.0;
        assert!((mean / 131_072.0 - 1.0).abs() < 0.03, "{mean}");
        assert_eq!(Tree::new(fileset, 1), Ok(tree.clone()));
        assert_ne!(Tree::new(fileset, 2), Ok(tree));
    }

    /// The golden tree: numbers of directories and sizes do not change unnoticed.
    #[test]
    fn golden_tree() {
        let tree = tree("entries=40,dirwidth=4,dirgamma=1500,size=1k,prealloc=50");
        let parents: Vec<u32> = tree.directories.iter().map(|directory| directory.parent).collect();
        let first: Vec<u32> = tree.order.iter().copied().take(8).collect();
        assert_eq!((parents.len(), first), (GOLDEN.0, GOLDEN.1.to_vec()));
    }

    const GOLDEN: (usize, [u32; 8]) = (13, [32, 15, 22, 9, 1, 23, 25, 2]);
}
