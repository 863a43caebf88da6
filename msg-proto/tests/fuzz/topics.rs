//! The filter of a publisher against subscribers without manners.

use std::collections::BTreeMap;

use bolero::check;
use msg_proto::topics::{TopicError, TopicLimits, TopicTable};

use crate::script::Script;

const LIMITS: TopicLimits =
    TopicLimits { topics_per_peer: 6, topic_bytes_max: 4, bytes_per_peer: 12 };

#[test]
fn no_subscriber_gets_over_its_limits_or_into_anothers_messages() {
    check!().for_each(|bytes: &[u8]| run(&mut Script::new(bytes)));
}

fn run(script: &mut Script<'_>) {
    let (mut table, mut model) = (TopicTable::new(LIMITS), Model::default());
    while let Some(step) = script.byte() {
        let peer = step % 4;
        let text: Vec<u8> = script.bytes(6).iter().map(|byte| byte % 3).collect();
        match step / 4 {
            0..28 => {
                let expected = model.refusal(peer, &text);
                let found = table.subscribe(peer, &text);
                assert_eq!(found.err(), expected);
                if expected.is_none() {
                    *model.0.entry((peer, text)).or_default() += 1;
                }
            }
            28..44 => {
                assert_eq!(table.cancel(peer, &text).known, model.cancel(peer, &text));
            }
            44..48 => {
                table.remove_peer(peer);
                model.0.retain(|(other, _), _| *other != peer);
            }
            _ => check_match(&table, &model, &text),
        }
        assert!(table.peers().eq(model.peers()));
    }
}

fn check_match(table: &TopicTable<u8>, model: &Model, subject: &[u8]) {
    let mut found = Vec::new();
    table.matches(subject, &mut found);
    assert_eq!(found, model.matches(subject));
    assert_eq!(table.any_match(subject), !found.is_empty());
}

/// Counts by peer and topic, searched from end to end.
#[derive(Default)]
struct Model(BTreeMap<(u8, Vec<u8>), u32>);

impl Model {
    fn topics(&self, peer: u8) -> impl Iterator<Item = &[u8]> {
        self.0.keys().filter(move |(other, _)| *other == peer).map(|(_, topic)| topic.as_slice())
    }

    fn refusal(&self, peer: u8, topic: &[u8]) -> Option<TopicError> {
        let bytes: usize = self.topics(peer).map(<[u8]>::len).sum();
        if self.topics(peer).any(|known| known == topic) {
            None
        } else if topic.len() > LIMITS.topic_bytes_max {
            let (bytes, bytes_max) = (topic.len(), LIMITS.topic_bytes_max);
            Some(TopicError::TooLong { bytes, bytes_max })
        } else if self.topics(peer).count() == LIMITS.topics_per_peer {
            Some(TopicError::TooMany { topics_max: LIMITS.topics_per_peer })
        } else if bytes + topic.len() > LIMITS.bytes_per_peer {
            Some(TopicError::TooMuch { bytes_max: LIMITS.bytes_per_peer })
        } else {
            None
        }
    }

    fn cancel(&mut self, peer: u8, topic: &[u8]) -> bool {
        let key = (peer, topic.to_vec());
        let known = self.0.get_mut(&key).map(|count| *count -= 1).is_some();
        self.0.retain(|_, count| *count > 0);
        known
    }

    fn peers(&self) -> Vec<u8> {
        let mut peers: Vec<_> = self.0.keys().map(|(peer, _)| *peer).collect();
        peers.dedup();
        peers
    }

    fn matches(&self, subject: &[u8]) -> Vec<u8> {
        let hit = |peer: &u8| self.topics(*peer).any(|topic| subject.starts_with(topic));
        self.peers().into_iter().filter(hit).collect()
    }
}
