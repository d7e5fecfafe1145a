//! Stub.
use super::inode::Inode;
use super::segment::Block;
use super::volume::{Op, Volume};
use crate::contract::Result;
use std::rc::Rc;
impl Volume {
    pub(crate) async fn recover_dentry(
        self: &Rc<Self>,
        _op: &Op,
        _inode: &Rc<Inode>,
    ) -> Result<()> {
        todo!()
    }
    pub(crate) async fn recover_xattr_node(
        &self,
        _op: &Op,
        _inode: &Rc<Inode>,
        _found: &Block,
    ) -> Result<()> {
        todo!()
    }
}
