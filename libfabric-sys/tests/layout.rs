//! Every structure against the headers of this host: a small C program prints where C puts each
//! field. Without a C compiler or the headers the test says so and ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use libfabric_sys::*;

/// A structure as this crate lays it out.
struct Layout {
    name: &'static str,
    bytes: usize,
    fields: Vec<(&'static str, usize)>,
}

macro_rules! layouts {
    ($($name:ident { $($field:ident)* })*) => {
        vec![$(Layout {
            name: stringify!($name),
            bytes: size_of::<$name>(),
            fields: vec![$((stringify!($field).trim_start_matches("r#"), offset_of!($name, $field)),)*],
        },)*]
    };
}

fn ours() -> Vec<Layout> {
    layouts! {
        fid { fclass context ops }
        fi_ops { size close bind control ops_open }
        fid_fabric { fid ops api_version }
        fi_ops_fabric { size domain passive_ep eq_open wait_open trywait }
        fi_info {
            next caps mode addr_format src_addrlen dest_addrlen src_addr dest_addr handle tx_attr
            rx_attr ep_attr domain_attr fabric_attr nic
        }
        fi_tx_attr {
            caps mode op_flags msg_order comp_order inject_size size iov_limit rma_iov_limit tclass
        }
        fi_rx_attr { caps mode op_flags msg_order comp_order total_buffered_recv size iov_limit }
        fi_ep_attr {
            r#type protocol protocol_version max_msg_size msg_prefix_size max_order_raw_size
            max_order_war_size max_order_waw_size mem_tag_format tx_ctx_cnt rx_ctx_cnt auth_key_size
            auth_key
        }
        fi_domain_attr {
            domain name threading control_progress data_progress resource_mgmt av_type mr_mode
            mr_key_size cq_data_size cq_cnt ep_cnt tx_ctx_cnt rx_ctx_cnt max_ep_tx_ctx max_ep_rx_ctx
            max_ep_stx_ctx max_ep_srx_ctx cntr_cnt mr_iov_limit caps mode auth_key auth_key_size
            max_err_data mr_cnt tclass
        }
        fi_fabric_attr { fabric name prov_name prov_version api_version }
        fid_domain { fid ops mr }
        fi_ops_domain {
            size av_open cq_open endpoint scalable_ep cntr_open poll_open stx_ctx srx_ctx query_atomic
        }
        fi_av_attr { r#type rx_ctx_bits count ep_per_node name map_addr flags }
        fid_av { fid ops }
        fi_ops_av { size insert insertsvc insertsym remove }
        fid_mr { fid mem_desc key }
        fi_ops_mr { size reg regv regattr }
        fid_ep { fid ops cm msg rma tagged atomic collective }
        fid_pep { fid ops cm }
        fi_ops_ep { size cancel getopt setopt }
        fi_ops_cm { size setname getname getpeer connect listen accept reject shutdown join }
        fi_ops_msg { size recv recvv recvmsg send sendv sendmsg inject senddata injectdata }
        fi_eq_attr { size flags wait_obj signaling_vector wait_set }
        fi_eq_err_entry { fid context data err prov_errno err_data err_data_size }
        fi_eq_cm_entry { fid info }
        fid_eq { fid ops }
        fi_ops_eq { size read readerr write sread strerror }
        fi_cq_attr { size flags format wait_obj signaling_vector wait_cond wait_set }
        fi_cq_msg_entry { op_context flags len }
        fi_cq_err_entry {
            op_context flags len buf data tag olen err prov_errno err_data err_data_size
        }
        fid_cq { fid ops }
        fi_ops_cq { size read readfrom readerr sread sreadfrom signal strerror }
    }
}

/// Numbers that C has under the same names.
fn numbers() -> Vec<(&'static str, u64)> {
    macro_rules! numbers {
        ($($name:ident)*) => { vec![$((stringify!($name), $name as u64),)*] };
    }
    numbers! {
        FI_MSG FI_RMA FI_ATOMIC FI_READ FI_WRITE FI_RECV FI_SEND FI_TRANSMIT FI_REMOTE_READ
        FI_REMOTE_WRITE FI_LOCAL_COMM FI_REMOTE_COMM FI_COMPLETION FI_INJECT FI_TRANSMIT_COMPLETE
        FI_DELIVERY_COMPLETE FI_SELECTIVE_COMPLETION FI_SOURCE FI_NUMERICHOST FI_PROV_ATTR_ONLY
        FI_CONTEXT FI_MSG_PREFIX FI_CONTEXT2 FI_MR_LOCAL FI_MR_VIRT_ADDR FI_MR_ALLOCATED
        FI_MR_PROV_KEY FI_MR_ENDPOINT FI_ORDER_SAS FI_ADDR_UNSPEC FI_FORMAT_UNSPEC FI_SOCKADDR
        FI_SOCKADDR_IN FI_SOCKADDR_IN6 FI_ADDR_STR FI_EP_UNSPEC FI_EP_MSG FI_EP_DGRAM FI_EP_RDM
        FI_AV_UNSPEC FI_AV_MAP FI_AV_TABLE FI_PROGRESS_UNSPEC FI_PROGRESS_AUTO FI_PROGRESS_MANUAL
        FI_THREAD_UNSPEC FI_THREAD_SAFE FI_THREAD_DOMAIN FI_RM_ENABLED FI_GETWAIT FI_ENABLE FI_BACKLOG
        FI_WAIT_NONE FI_WAIT_UNSPEC FI_WAIT_FD FI_NOTIFY FI_CONNREQ FI_CONNECTED FI_SHUTDOWN
        FI_CQ_FORMAT_CONTEXT FI_CQ_FORMAT_MSG FI_EOTHER FI_ETOOSMALL FI_EOPBADSTATE FI_EAVAIL
        FI_EBADFLAGS FI_ENOEQ FI_EDOMAIN FI_ENOCQ FI_ECRC FI_ETRUNC FI_ENOKEY FI_ENOAV FI_EOVERRUN
        FI_ENORX FI_EAGAIN FI_ENODATA FI_ENOSYS
    }
}

const HEAD: &str = "#include <stddef.h>\n#include <stdio.h>\n#include <rdma/fabric.h>\n\
    #include <rdma/fi_domain.h>\n#include <rdma/fi_endpoint.h>\n#include <rdma/fi_cm.h>\n\
    #include <rdma/fi_eq.h>\n#include <rdma/fi_errno.h>\nint main(void) {\n";

fn program(layouts: &[Layout]) -> String {
    let mut text = String::from(HEAD);
    for Layout { name, fields, .. } in layouts {
        writeln!(text, "printf(\"{name} %zu\\n\", sizeof(struct {name}));").unwrap();
        for (field, _) in fields {
            writeln!(text, "printf(\"{name}.{field} %zu\\n\", offsetof(struct {name}, {field}));")
                .unwrap();
        }
    }
    for (name, _) in numbers() {
        writeln!(text, "printf(\"{name} %llu\\n\", (unsigned long long)({name}));").unwrap();
    }
    text.push_str("return 0;\n}\n");
    text
}

/// Where the headers are: those installed, or others that the environment names.
fn include_dir() -> PathBuf {
    std::env::var_os("LIBFABRIC_INCLUDE_DIR").map_or_else(|| "/usr/include".into(), PathBuf::from)
}

/// What C says, or why it cannot be asked.
fn theirs(layouts: &[Layout]) -> Result<BTreeMap<String, u64>, String> {
    let include = include_dir();
    if !include.join("rdma/fabric.h").exists() {
        return Err("libfabric's headers are not installed (Debian: libfabric-dev)".into());
    }
    let dir = tempfile(layouts)?;
    let (source, binary) = (dir.join("layout.c"), dir.join("layout"));
    let built =
        Command::new("cc").arg("-I").arg(&include).arg(&source).arg("-o").arg(&binary).output();
    let built = built.map_err(|error| format!("there is no C compiler: {error}"))?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let printed = Command::new(&binary).output().map_err(|error| error.to_string())?;
    std::fs::remove_dir_all(&dir).map_err(|error| error.to_string())?;
    Ok(parse(&String::from_utf8_lossy(&printed.stdout)))
}

fn tempfile(layouts: &[Layout]) -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("layout-{}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    std::fs::write(dir.join("layout.c"), program(layouts)).map_err(|error| error.to_string())?;
    Ok(dir)
}

fn parse(text: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

#[test]
fn structures_lie_where_c_puts_them() {
    let layouts = ours();
    let theirs = match theirs(&layouts) {
        Ok(theirs) => theirs,
        Err(why) => return println!("skipped: {why}"),
    };
    for Layout { name, bytes, fields } in &layouts {
        // Newer headers may add fields at the end.
        let in_c = theirs[*name] as usize;
        assert!(in_c >= *bytes, "{name} has {in_c} bytes in C and {bytes} here");
        for (field, offset) in fields {
            let key = format!("{name}.{field}");
            assert_eq!(theirs[&key] as usize, *offset, "{key}");
        }
    }
    for (name, value) in numbers() {
        let mask = if theirs[name] > u64::from(u32::MAX) { u64::MAX } else { u64::from(u32::MAX) };
        assert_eq!(theirs[name] & mask, value & mask, "{name}");
    }
}
