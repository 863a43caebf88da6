//! Promises to break on purpose.

/// A planted bug. Each stands in one place in this crate, named there, and one case of the
/// conformance suite is there to catch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bug {
    /// A message overtakes the one before it.
    Reorders,
    /// Some messages arrive twice.
    Duplicates,
    /// Some messages never arrive.
    DropsOne,
    /// The last byte of a message arrives changed.
    CorruptsByte,
    /// Only the first segment of a message arrives.
    SendsFirstSegmentOnly,
    /// A message that finds no receive is dropped instead of waiting.
    LosesWaiting,
    /// A message that is too long for its receive arrives cut.
    TruncatesLong,
    /// Messages are reported on the wrong endpoint.
    CrossesEndpoints,
    /// Closing an endpoint reports all but one of its posted sends.
    LosesBufferOnClose,
    /// Dropping a domain leaks a posted receive.
    LeaksSlotOnDrop,
    /// A send is reported twice.
    ReportsSentTwice,
    /// Buffers of refused posts are kept instead of handed back.
    KeepsRefusedBuffer,
    /// More sends than the depth are accepted.
    IgnoresSendDepth,
    /// More receives than the depth are accepted.
    IgnoresRecvDepth,
    /// Messages over the limit are accepted.
    IgnoresMessageMax,
    /// More segments than the limit are accepted.
    IgnoresSegmentsMax,
    /// `poll` appends one more event than asked for.
    PollExceedsMax,
    /// The waker does nothing.
    WaitIgnoresWaker,
    /// The descriptor stays silent after `arm`.
    ArmStaysSilent,
    /// The peer is not told of a close.
    NeverCloses,
    /// Flushed sends are reported after the close.
    EventAfterClosed,
    /// A close throws away what was handed over before.
    CloseDropsHandedOver,
    /// A connection to nobody never ends.
    NeverRefuses,
    /// `unlisten` goes on accepting.
    UnlistenKeepsAccepting,
    /// `unlisten` does not free the address.
    UnlistenKeepsAddress,
    /// Two may listen at one address.
    SharesAddress,
    /// The nonce of a remote key is not checked.
    IgnoresKey,
    /// Remote access beyond the exposed memory is cut to fit instead of refused.
    IgnoresBounds,
    /// What a peer may do with exposed memory is not checked.
    IgnoresAccess,
    /// A revoked key still answers.
    IgnoresRevoke,
    /// A key works on any endpoint.
    ForeignKeyWorks,
    /// A refused access does not close the endpoint.
    AccessKeepsEndpoint,
    /// `revoke` gives the slot back as if it were filled.
    RevokeForgetsLength,
    /// Reads start at the beginning of the memory.
    ReadIgnoresOffset,
    /// Writes are reported done before the bytes are there, and never get there.
    WriteAcksEarly,
    /// An immediate value does not arrive.
    ForgetsImm,
    /// Atomics report the value after instead of the one before.
    AtomicReturnsNew,
    /// `fetch_add` stops at the largest value.
    AddSaturates,
    /// `compare_swap` does not compare.
    SwapsAlways,
    /// A member of a group hears itself.
    EchoesMulticast,
    /// Only one other member of a group hears a datagram.
    ReachesOneMember,
    /// Datagrams reach the members of all groups.
    MixesGroups,
    /// A member that left still hears.
    LeaveKeepsHearing,
    /// A group that was left cannot be joined again.
    JoinsOnce,
    /// The last byte of a datagram as long as the limit is lost.
    CutsLargeDatagrams,
    /// Datagrams over the limit are accepted.
    IgnoresMtu,
    /// Only the first segment of a datagram arrives.
    CastsFirstSegmentOnly,
    /// Datagrams are reported under another operation than their receive.
    NamesNoReceive,
    /// Datagrams without a receive are not counted.
    DropsUncounted,
    /// A datagram that is too long for its receive arrives cut.
    TruncatesDatagrams,
    /// A datagram is reported twice at its sender.
    ReportsCastTwice,
    /// Datagrams that nobody else hears never come back.
    KeepsUnheardCasts,
    /// More datagrams than the depth are accepted.
    IgnoresGroupDepth,
    /// Leaving a group reports none of its posted datagrams.
    LosesCastsOnLeave,
    /// Dropping a domain leaks posted datagrams.
    LeaksCastsOnDrop,
    /// Who is no member of a group may send to it.
    CastsForStrangers,
    /// A group can be left without being joined.
    LeavesTwice,
    /// Any address counts as a group.
    JoinsHosts,
    /// The descriptor stays silent when a datagram comes.
    CastsStaySilent,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 59] = [
        Self::Reorders,
        Self::Duplicates,
        Self::DropsOne,
        Self::CorruptsByte,
        Self::SendsFirstSegmentOnly,
        Self::LosesWaiting,
        Self::TruncatesLong,
        Self::CrossesEndpoints,
        Self::LosesBufferOnClose,
        Self::LeaksSlotOnDrop,
        Self::ReportsSentTwice,
        Self::KeepsRefusedBuffer,
        Self::IgnoresSendDepth,
        Self::IgnoresRecvDepth,
        Self::IgnoresMessageMax,
        Self::IgnoresSegmentsMax,
        Self::PollExceedsMax,
        Self::WaitIgnoresWaker,
        Self::ArmStaysSilent,
        Self::NeverCloses,
        Self::EventAfterClosed,
        Self::CloseDropsHandedOver,
        Self::NeverRefuses,
        Self::UnlistenKeepsAccepting,
        Self::UnlistenKeepsAddress,
        Self::SharesAddress,
        Self::IgnoresKey,
        Self::IgnoresBounds,
        Self::IgnoresAccess,
        Self::IgnoresRevoke,
        Self::ForeignKeyWorks,
        Self::AccessKeepsEndpoint,
        Self::RevokeForgetsLength,
        Self::ReadIgnoresOffset,
        Self::WriteAcksEarly,
        Self::ForgetsImm,
        Self::AtomicReturnsNew,
        Self::AddSaturates,
        Self::SwapsAlways,
        Self::EchoesMulticast,
        Self::ReachesOneMember,
        Self::MixesGroups,
        Self::LeaveKeepsHearing,
        Self::JoinsOnce,
        Self::CutsLargeDatagrams,
        Self::IgnoresMtu,
        Self::CastsFirstSegmentOnly,
        Self::NamesNoReceive,
        Self::DropsUncounted,
        Self::TruncatesDatagrams,
        Self::ReportsCastTwice,
        Self::KeepsUnheardCasts,
        Self::IgnoresGroupDepth,
        Self::LosesCastsOnLeave,
        Self::LeaksCastsOnDrop,
        Self::CastsForStrangers,
        Self::LeavesTwice,
        Self::JoinsHosts,
        Self::CastsStaySilent,
    ];
}
