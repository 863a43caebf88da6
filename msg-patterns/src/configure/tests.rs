use std::time::Duration;

use msg_proto::types::SocketType;
use proptest::prelude::*;

use super::table::Options;
use super::{Setting, Settings, names, query};
use crate::options::{Linger, OnFull, ReconnectStop};
use crate::{Builder, Bytes, Error, ErrorKind, Pub, Req, Sub};

fn text(result: Result<impl std::fmt::Debug, Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.to_string()
}

fn settings(text: &str) -> Result<Settings, Error> {
    text.parse()
}

fn singles() -> impl Iterator<Item = &'static Setting> {
    Setting::all().iter().filter(|setting| setting.stands_for.is_empty())
}

#[test]
fn every_default_is_written_as_the_table_says() {
    let mut read = Options::default();
    for setting in Setting::all() {
        assert_eq!(setting.get(&Options::default()), setting.default(), "{}", setting.name());
        setting.set(&mut read, setting.default()).unwrap();
    }
    assert_eq!(read, Options::default());
}

#[test]
fn names_are_there_once_and_can_stand_in_addresses_and_in_the_environment() {
    let mut names: Vec<&str> = Setting::all().iter().map(Setting::name).collect();
    assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Setting::all().len());
}

#[test]
fn what_stands_for_several_names_settings_that_there_are() {
    for setting in Setting::all() {
        assert!(setting.stands_for.iter().all(|name| names::find(name).is_ok()));
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest() {
    let cases = [
        ("lingr=5s", "unknown setting `lingr`: did you mean `linger`?"),
        ("HWM=1", "unknown setting `HWM`: did you mean `hwm`?"),
        ("sndhwm=1", "unknown setting `sndhwm`: did you mean `send_hwm`?"),
        (
            "reconect-intervall=1s",
            "unknown setting `reconect-intervall`: did you mean `reconnect_interval`?",
        ),
    ];
    for (given, refusal) in cases {
        assert_eq!(text(settings(given)), refusal);
    }
    let far = text(settings("pigeon=1"));
    assert!(far.starts_with("unknown setting `pigeon`: there are hwm, "), "{far}");
}

#[test]
fn only_settings_that_the_socket_has_are_meant() {
    let refused = text(names::find_of(SocketType::Sub, "histori"));
    assert!(!refused.contains("did you mean `history`"), "{refused}");
    assert!(text(names::find_of(SocketType::Pub, "histori")).ends_with("did you mean `history`?"));
}

#[test]
fn a_setting_of_other_sockets_names_them() {
    let of_pub = settings("history=3&conflate=true").unwrap();
    assert_eq!(
        text(Sub::builder().settings(&of_pub)),
        "SUB has no setting `history`: PUB and XPUB have it"
    );
    assert_eq!(
        text(Req::builder().settings(&settings("conflate=true").unwrap())),
        "REQ has no setting `conflate`: PUB and SUB have it"
    );
    assert!(Pub::builder().settings(&of_pub).is_ok());
}

#[test]
fn a_value_that_means_nothing_is_refused_with_what_may_be_written() {
    let cases = [
        ("hwm=many", "`many` is no hwm: write a whole number such as 1000"),
        (
            "linger=soon",
            "`soon` is no linger: write a time such as 5s, 200ms or 2m, or `forever`, or `no`",
        ),
        (
            "message_bytes_max=0",
            "`0` is no message_bytes_max: write a size of at least 1, such as 4096, 64KiB, 1G or 10MB",
        ),
        ("immediate=yes", "`yes` is no immediate: write `true` or `false`"),
        ("on_full=wait", "`wait` is no on_full: write `drop` or `block`"),
        (
            "reconnect_interval=0s",
            "`0s` is no reconnect_interval: write a time over 0, such as 5s, 200ms or 2m, or `never`",
        ),
        ("hwm=1&hwm=2", "`hwm` is given twice"),
        ("identity=%zz", "`%zz` of identity cannot be read: write % as %25, and text as UTF-8"),
    ];
    for (given, refusal) in cases {
        assert_eq!(text(settings(given)), refusal);
    }
}

#[test]
fn what_a_builder_sets_and_nobody_could_write_is_refused_alike() {
    let context = crate::Context::new();
    let refused = Pub::builder().message_bytes_max(0).build(&context);
    assert!(
        text(refused).starts_with("0 is no message_bytes_max: it must be a size of at least 1")
    );
    assert_eq!(
        text(Pub::builder().identity(vec![0, 1]).build(&context)).split(':').next(),
        Some("\\x00\\x01 is no identity")
    );
}

#[test]
fn one_name_sets_both_sides_and_a_single_one_holds_against_it() {
    let given = settings("send_hwm=7&hwm=5&hwm_bytes=1MiB").unwrap();
    let options = Pub::builder().settings(&given).unwrap().options;
    assert_eq!((options.send_hwm, options.recv_hwm), (7, 5));
    assert_eq!((options.send_hwm_bytes, options.recv_hwm_bytes), (1 << 20, 1 << 20));
}

#[test]
fn the_environment_is_read_behind_its_prefix() {
    let vars = [("APP_LINGER", "200ms"), ("PATH", "/bin"), ("APP_SEND_HWM", "9")];
    let found = Settings::from_vars("APP_", vars).unwrap();
    assert_eq!(found, settings("linger=200ms&send_hwm=9").unwrap());
    assert_eq!(
        text(Settings::from_vars("APP_", [("APP_LINGR", "1s")])),
        "APP_LINGR: unknown setting `lingr`: did you mean `linger`?"
    );
    assert!(
        text(Settings::from_vars("APP_", [("APP_HWM", "x")])).starts_with("APP_HWM: `x` is no")
    );
}

#[test]
fn a_builder_says_what_it_changed() {
    let builder = Pub::builder().linger(Linger::No).history(3).send_hwm(1000);
    assert_eq!(builder.to_settings().to_string(), "history=3&linger=no");
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![3 => any::<u64>().prop_map(Duration::from_nanos), 1 => any::<Duration>()]
}

prop_compose! {
    fn timing()(
        linger in prop_oneof![Just(Linger::Forever), Just(Linger::No), duration().prop_map(Linger::For)],
        reconnect_interval in prop::option::of(duration()),
        reconnect_interval_max in duration(),
        heartbeat_interval in duration(),
        heartbeat_timeout in prop::option::of(duration()),
        heartbeat_ttl in duration(),
        handshake_timeout in duration(),
        busy_poll in duration(),
        resend_after in prop::option::of(duration()),
    ) -> Options {
        Options {
            linger, reconnect_interval, reconnect_interval_max, heartbeat_interval,
            heartbeat_timeout, heartbeat_ttl, handshake_timeout, busy_poll, resend_after,
            ..Options::default()
        }
    }
}

prop_compose! {
    fn numbers()(
        hwm in any::<(usize, usize, usize, usize)>(),
        message_bytes_max in any::<usize>(),
        identity in prop::collection::vec(any::<u8>(), 0..300),
        text in "\\PC{0,20}",
        name in "\\PC{0,20}|[\\n ]{0,3}|a{254,257}",
        counts in any::<(usize, usize, usize)>(),
    ) -> Options {
        Options {
            send_hwm: hwm.0, send_hwm_bytes: hwm.1, recv_hwm: hwm.2, recv_hwm_bytes: hwm.3,
            message_bytes_max, name,
            identity: Bytes::from(if counts.0 % 2 == 0 { identity } else { text.into_bytes() }),
            history: counts.0, subscriptions_max: counts.1, peers_max: counts.2,
            ..Options::default()
        }
    }
}

prop_compose! {
    fn options()(
        timing in timing(),
        numbers in numbers(),
        stop in any::<(bool, bool)>(),
        on_full in prop_oneof![Just(OnFull::Drop), Just(OnFull::Block)],
        on in any::<[bool; 6]>(),
    ) -> Options {
        Options {
            linger: timing.linger,
            reconnect_interval: timing.reconnect_interval,
            reconnect_interval_max: timing.reconnect_interval_max,
            heartbeat_interval: timing.heartbeat_interval,
            heartbeat_timeout: timing.heartbeat_timeout,
            heartbeat_ttl: timing.heartbeat_ttl,
            handshake_timeout: timing.handshake_timeout,
            busy_poll: timing.busy_poll,
            resend_after: timing.resend_after,
            reconnect_stop: ReconnectStop { on_refused: stop.0, on_handshake_failed: stop.1 },
            on_full,
            immediate: on[0], conflate: on[1], invert_matching: on[2], acknowledge: on[3],
            retry: on[4], relaxed: on[5],
            ..numbers
        }
    }
}

proptest! {
    #[test]
    fn every_setting_that_makes_sense_survives_being_written_and_read(options in options()) {
        let mut read = Options::default();
        for setting in singles() {
            let written = setting.get(&options);
            let outcome = setting.set(&mut read, &written);
            prop_assert_eq!(outcome.is_ok(), setting.check(&options).is_ok(), "{}", written);
        }
        if Setting::all().iter().all(|setting| setting.check(&options).is_ok()) {
            prop_assert_eq!(read, options);
        }
    }

    #[test]
    fn what_a_builder_sets_survives_an_address(options in options()) {
        let mut builder: Builder<Pub> = Pub::builder();
        builder.options = options;
        let sense = singles().all(|setting| setting.check(&builder.options).is_ok());
        let read = settings(&builder.to_settings().to_string());
        prop_assert_eq!(read.is_ok(), sense);
        if sense {
            prop_assert_eq!(read.unwrap(), builder.to_settings());
        }
    }

    #[test]
    fn what_is_encoded_is_decoded(text in "\\PC{0,30}|[%&=?#\\\\ a]{0,10}") {
        let encoded = query::encoded(&text);
        prop_assert!(!encoded.contains(['&', '=', '?', '#', ' ']));
        prop_assert_eq!(query::decoded("identity", &encoded).unwrap(), text);
    }

    #[test]
    fn no_text_panics(name in "\\PC{0,80}|[a-z_]{3,20}", value in "\\PC{0,20}|[0-9a-z.,%\\\\]{0,20}") {
        let _ = settings(&format!("{name}={value}"));
        let _ = Settings::from_vars("A_", [(format!("A_{name}"), &value)]);
        for setting in Setting::all() {
            let _ = setting.set(&mut Options::default(), &value);
            let _ = settings(&format!("{}={value}", setting.name()));
        }
    }
}
