use flatbuffers::FlatBufferBuilder;

use crate::Error;
use crate::codec::codec;
use crate::generated::link_action::{self as wire_action, LinkAction as Root};
use crate::wire::Kind;

/// A console's request to cut or restore an emulated link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkAction {
    /// Index into [`OperatorStatus::emulated_links`](crate::OperatorStatus::emulated_links).
    pub link: u8,
    /// True to cut the link rather than restore it.
    pub cut: bool,
}

codec!(LinkAction);

impl LinkAction {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let arguments = wire_action::LinkActionArgs { link: self.link, cut: self.cut };
        let root = Root::create(builder, &arguments);
        wire_action::finish_link_action_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        Ok(Self { link: root.link(), cut: root.cut() })
    }
}

const KIND: Kind = Kind {
    name: "link action",
    identifier: Some(wire_action::LINK_ACTION_IDENTIFIER),
    bytes_max: 256,
    tables_max: 1,
    depth_max: 1,
};
