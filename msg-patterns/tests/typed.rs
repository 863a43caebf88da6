//! Values in messages: what goes in comes out, and what is no value comes back as it was.

use std::collections::BTreeMap;
use std::time::Duration;

use allocation_counter::measure;
use futures_lite::future::{block_on, poll_once};
use msg_patterns::{
    Codec, CodecError, Context, Encoder, ErrorKind, Json, Message, Postcard, Pub, Pull, Push, Rep,
    Req, Sub, Typed, TypedRecvError, TypedSendError,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// Watchdog: longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);
const ANYWHERE: &str = "tcp://127.0.0.1:0";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Reading {
    station: String,
    at: u64,
    state: State,
    parts: Vec<Option<i32>>,
    labels: BTreeMap<String, bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum State {
    Idle,
    Busy { share: f32 },
    Failed(String),
}

/// The same as [`Reading`] begins with, borrowed.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Borrowed<'a> {
    station: &'a str,
    #[serde(borrow)]
    raw: &'a [u8],
}

fn states() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Idle),
        (-1e6_f32..1e6).prop_map(|share| State::Busy { share }),
        ".*".prop_map(State::Failed),
    ]
}

fn readings() -> impl Strategy<Value = Reading> {
    let parts = prop::collection::vec(any::<Option<i32>>(), 0..8);
    let labels = prop::collection::btree_map(".*", any::<bool>(), 0..4);
    (".*", any::<u64>(), states(), parts, labels).prop_map(|(station, at, state, parts, labels)| {
        Reading { station, at, state, parts, labels }
    })
}

fn reading() -> Reading {
    let labels = BTreeMap::from([("indoors".to_owned(), true)]);
    let (station, state) = ("berlin".to_owned(), State::Busy { share: 0.5 });
    Reading { station, at: 7, state, parts: vec![Some(-1), None], labels }
}

/// All beginnings of `message`, but the whole.
fn beginnings(message: &Message) -> impl Iterator<Item = Message> {
    let bytes = message.first().clone();
    (0..bytes.len()).map(move |len| bytes.slice(..len).into())
}

fn check<C: Codec>(codec: C, reading: &Reading) {
    let message = Message::encode(codec, reading).unwrap();
    assert_eq!(message.decode::<_, Reading>(codec).unwrap(), *reading);
    for short in beginnings(&message) {
        let error = short.decode::<_, Reading>(codec).unwrap_err();
        assert_eq!((error.codec(), error.bytes()), (C::NAME, short.len()));
    }
    let long = Message::from([message.first(), &b"x"[..]].concat());
    long.decode::<_, Reading>(codec).unwrap_err();
}

proptest! {
    #[test]
    fn what_goes_in_comes_out_and_every_other_length_is_refused(reading in readings()) {
        check(Json, &reading);
        check(Postcard, &reading);
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let message = Message::from(bytes);
        let whole = |error: CodecError| assert_eq!(error.bytes(), message.len());
        let _ = message.decode::<_, Reading>(Json).map_err(whole);
        let _ = message.decode::<_, Reading>(Postcard).map_err(whole);
        let _ = message.decode::<_, Borrowed<'_>>(Postcard).map_err(whole);
    }

    #[test]
    fn messages_of_one_encoder_do_not_touch_each_other(readings in prop::collection::vec(readings(), 1..20)) {
        let mut encoder = Encoder::new(Postcard);
        let encoded: Vec<_> = readings.iter().map(|one| encoder.message(one).unwrap()).collect();
        let decoded: Vec<Reading> = encoded.iter().map(|one| one.decode(Postcard).unwrap()).collect();
        prop_assert_eq!(decoded, readings);
    }
}

#[test]
fn fields_borrow_from_the_message() {
    let value = Borrowed { station: "berlin", raw: &[1, 2, 3] };
    let message = Message::encode(Postcard, &value).unwrap();
    let read: Borrowed<'_> = message.decode(Postcard).unwrap();
    assert_eq!(read, value);
    let within = message.first().as_ptr_range();
    assert!(within.contains(&read.station.as_ptr()) && within.contains(&read.raw.as_ptr()));
    // And can be kept, sharing what arrived.
    let kept = message.first().slice_ref(read.raw);
    drop(message);
    assert_eq!(kept, [1, 2, 3][..]);
}

#[test]
fn the_value_stands_in_the_last_part() {
    let message = Message::from("topic").with_encoded(Json, &7).unwrap();
    assert_eq!(message.parts().len(), 2);
    assert_eq!(message.decode::<_, u8>(Json).unwrap(), 7);
}

#[test]
fn an_error_says_which_codec_which_type_and_how_many_bytes() {
    let error = Message::from("[1, 2").decode::<_, Vec<u8>>(Json).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("json cannot read 5 bytes as alloc::vec::Vec<u8>: "), "{text}");
    let error = Message::from("\x01\x02\x03").decode::<_, u8>(Postcard).unwrap_err();
    let text = error.to_string();
    assert_eq!(text, "postcard cannot read 3 bytes as u8: 2 bytes are left behind it");
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    // Keys of JSON are text.
    let unspeakable = BTreeMap::from([(vec![1], 2)]);
    let mut encoder = Encoder::new(Json);
    let error = encoder.message(&unspeakable).unwrap_err();
    assert!(error.to_string().starts_with("json cannot write "), "{error}");
    assert!(error.bytes() > 0, "nothing had been written: {error}");
    assert_eq!(encoder.message(&1).unwrap().first(), "1");
}

#[test]
fn small_messages_that_have_gone_leave_their_memory_to_the_next() {
    let mut encoder = Encoder::new(Postcard);
    let value = (7_u64, [1_u8; 32]);
    encoder.message(&value).unwrap();
    let counted = measure(|| {
        for _ in 0..10_000 {
            assert!(encoder.message(&value).unwrap().len() > 32);
        }
    });
    assert!(counted.count_total <= 2, "{} allocations", counted.count_total);
}

#[test]
fn a_large_message_does_not_stay_for_the_sake_of_what_was_left_of_it() {
    let mut encoder = Encoder::new(Json);
    let held = measure(|| drop(encoder.message(&"x".repeat(10 << 20)).unwrap()));
    assert!(held.bytes_current < 1 << 20, "{} bytes are held", held.bytes_current);
}

fn pipe<T>() -> (Typed<Push, T, Postcard>, Typed<Pull, T, Postcard>) {
    let context = Context::new();
    let pull = Pull::new(&context).unwrap();
    let push = Push::new(&context).unwrap();
    push.connect(&pull.bind(ANYWHERE).unwrap().to_string()).unwrap();
    (Typed::new(push, Postcard), Typed::new(pull, Postcard))
}

#[test]
fn values_go_from_socket_to_socket_in_order() {
    let (push, pull) = pipe::<Reading>();
    let sent: Vec<_> = (0..500).map(|at| Reading { at, ..reading() }).collect();
    sent.iter().for_each(|one| push.send(one).unwrap());
    let came: Vec<_> = sent.iter().map(|_| pull.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(came, sent);
}

#[test]
fn a_message_that_is_no_value_comes_as_it_is_and_the_next_one_after_it() {
    let (push, pull) = pipe::<Reading>();
    push.socket().send("what is this?").unwrap();
    push.send(&reading()).unwrap();
    match pull.recv_timeout(LONG) {
        Err(TypedRecvError::Undecoded(undecoded)) => {
            assert_eq!(undecoded.message.first(), "what is this?");
            assert_eq!(undecoded.error.codec(), "postcard");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(pull.recv_timeout(LONG).unwrap(), reading());
}

#[test]
fn a_value_that_is_not_sent_comes_back_as_its_message() {
    let push = Typed::<_, Reading, _>::new(Push::new(&Context::new()).unwrap(), Json);
    match push.try_send(&reading()) {
        Err(TypedSendError::Unsent(refused)) => {
            assert_eq!(refused.kind(), ErrorKind::NoPeer);
            assert_eq!(refused.message.decode::<_, Reading>(Json).unwrap(), reading());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_receive_that_is_dropped_leaves_the_value_where_it_was() {
    let (push, pull) = pipe::<u32>();
    block_on(async {
        assert!(poll_once(pull.recv_async()).await.is_none());
        push.send_async(&7).await.unwrap();
        assert_eq!(pull.recv_async().await.unwrap(), 7);
    });
}

#[test]
fn a_publisher_puts_the_topic_before_the_value() {
    let context = Context::new();
    let publisher = Pub::new(&context).unwrap();
    let sub = Sub::new(&context).unwrap();
    sub.subscribe("weather.").unwrap();
    sub.connect(&publisher.bind(ANYWHERE).unwrap().to_string()).unwrap();
    publisher.wait_matching("weather.", 1, LONG).unwrap();

    let publisher = Typed::<_, Reading, _>::new(publisher, Json);
    publisher.publish("sports.", &reading()).unwrap();
    publisher.publish("weather.berlin", &reading()).unwrap();
    let message = sub.recv_timeout(LONG).unwrap();
    assert_eq!(message.first(), "weather.berlin");
    assert_eq!(message.decode::<_, Reading>(Json).unwrap(), reading());
}

#[test]
fn questions_and_answers_have_types_of_their_own() {
    let context = Context::new();
    let rep = Rep::new(&context).unwrap();
    let req = Req::new(&context).unwrap();
    req.connect(&rep.bind(ANYWHERE).unwrap().to_string()).unwrap();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let question = rep.recv_timeout(LONG).unwrap();
            let length = question.decode::<_, &str>(Json).unwrap().len();
            rep.send(Message::encode(Json, &length).unwrap()).unwrap();
        }
    });
    let req = Typed::<_, String, _>::new(req, Json);
    assert_eq!(req.request::<usize>(&"four".to_owned(), LONG).unwrap(), 4);
    let wrong = req.request::<String>(&"four".to_owned(), LONG).unwrap_err();
    assert!(matches!(wrong, TypedRecvError::Undecoded(_)), "{wrong:?}");
    server.join().unwrap();
}
