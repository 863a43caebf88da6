//! The connection manager: ids, their queue pairs, and the channel of events.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rdma_sys as ffi;
use rustix::io::ioctl_fionbio;
use socket2::{SockAddr, SockAddrStorage};

use super::device::mtu_bytes;
use super::event::{CmEvent, CmKind, UdRoute};
use super::work::{Chain, Wr};
use super::{Device, Queues, RecvWr, check, check_errno, note_leak};

/// What kind of traffic an id is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Reliable connections.
    Connected,
    /// Datagrams and multicast.
    Datagram,
}

/// What queue pair to make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QpPlan {
    /// Requests in the send queue.
    pub(crate) send_depth: usize,
    /// Receives of its own; 0 to use the shared ones.
    pub(crate) recv_depth: usize,
    /// Segments in one request.
    pub(crate) sges: usize,
    /// Bytes taken while a request is posted.
    pub(crate) inline_bytes: usize,
}

/// What is told to the peer's device about a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnParams<'a> {
    /// For the peer's provider.
    pub(crate) private: &'a [u8],
    /// Reads and atomics that this side serves at once.
    pub(crate) serves: u8,
    /// Reads and atomics that this side has in flight.
    pub(crate) reads: u8,
}

/// Repetitions before a silent peer breaks the connection. The field holds 7, too, but soft-RoCE then
/// repeats for ever: a peer whose host went off was never missed.
const RETRIES: u8 = 6;
/// Tries when the peer has no receive posted. 7 would be for ever.
const RNR_RETRIES: u8 = 6;
/// `RDMA_OPTION_ID` and `RDMA_OPTION_ID_ACK_TIMEOUT` of `rdma_cma.h`.
const OPTION_ID: i32 = 0;
const OPTION_ACK_TIMEOUT: i32 = 3;

/// Where events of ids come in.
pub(crate) struct EventChannel(NonNull<ffi::rdma_event_channel>);

// SAFETY: the library locks what it must; calls on a channel may come from any thread.
unsafe impl Send for EventChannel {}
// SAFETY: as above.
unsafe impl Sync for EventChannel {}

impl EventChannel {
    /// # Errors
    /// What the host says when there is no connection manager.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        // SAFETY: no condition.
        let raw = unsafe { ffi::rdma_create_event_channel() };
        let channel = Self(NonNull::new(raw).ok_or_else(io::Error::last_os_error)?);
        ioctl_fionbio(channel.fd(), true)?;
        Ok(Arc::new(channel))
    }

    /// Readable when an event waits.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel and its descriptor live as long as `self`.
        unsafe { BorrowedFd::borrow_raw(self.0.as_ref().fd) }
    }

    /// The next event, if one waits.
    pub(crate) fn next(self: &Arc<Self>) -> Option<CmEvent> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is alive and does not block.
        if unsafe { ffi::rdma_get_cm_event(self.0.as_ptr(), &mut raw) } != 0 {
            return None;
        }
        // SAFETY: the event is valid until it is acknowledged, once, right after it was copied. Its
        // id is alive: events of destroyed ids are not delivered.
        unsafe {
            let event = copy(self, &*raw);
            ffi::rdma_ack_cm_event(raw);
            Some(event)
        }
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once, and all ids are gone as they hold it.
        unsafe { ffi::rdma_destroy_event_channel(self.0.as_ptr()) }
    }
}

/// # Safety
/// The event must be unacknowledged.
unsafe fn copy(channel: &Arc<EventChannel>, event: &ffi::rdma_cm_event) -> CmEvent {
    use ffi::rdma_cm_event_type as kind;
    // SAFETY: the id of an unacknowledged event is alive.
    let is_datagram = unsafe { (*event.id).ps } == ffi::rdma_port_space::RDMA_PS_UDP;
    // SAFETY: the union's member follows from the id's kind.
    let conn = if is_datagram { None } else { Some(unsafe { event.param.conn }) };
    let owner =
        if event.event == kind::RDMA_CM_EVENT_CONNECT_REQUEST { event.listen_id } else { event.id };
    let what = match event.event {
        kind::RDMA_CM_EVENT_ADDR_RESOLVED => CmKind::AddressResolved,
        kind::RDMA_CM_EVENT_ROUTE_RESOLVED => CmKind::RouteResolved,
        kind::RDMA_CM_EVENT_CONNECT_REQUEST => match NonNull::new(event.id) {
            Some(raw) => CmKind::Request(Id::adopt(channel, raw)),
            None => CmKind::Other(event.event),
        },
        kind::RDMA_CM_EVENT_ESTABLISHED => CmKind::Established,
        kind::RDMA_CM_EVENT_DISCONNECTED => CmKind::Disconnected,
        kind::RDMA_CM_EVENT_REJECTED => CmKind::Rejected,
        kind::RDMA_CM_EVENT_ADDR_ERROR
        | kind::RDMA_CM_EVENT_ROUTE_ERROR
        | kind::RDMA_CM_EVENT_CONNECT_ERROR
        | kind::RDMA_CM_EVENT_UNREACHABLE => CmKind::Failed,
        kind::RDMA_CM_EVENT_DEVICE_REMOVAL => CmKind::DeviceRemoved,
        kind::RDMA_CM_EVENT_MULTICAST_JOIN => {
            // SAFETY: this event carries the way to the group.
            CmKind::Joined(UdRoute::new(unsafe { &event.param.ud }))
        }
        kind::RDMA_CM_EVENT_MULTICAST_ERROR => CmKind::JoinFailed,
        other => CmKind::Other(other),
    };
    CmEvent {
        // SAFETY: the id of an unacknowledged event is alive, and so is its listener.
        cookie: unsafe { (*owner).context } as u64,
        kind: what,
        status: event.status,
        // SAFETY: the event's private data is valid until it is acknowledged.
        private: conn.map_or_else(Vec::new, |conn| unsafe { private_of(&conn) }),
        peer_reads: conn.map_or(0, |conn| conn.initiator_depth),
        peer_serves: conn.map_or(0, |conn| conn.responder_resources),
    }
}

/// # Safety
/// The private data must be valid.
unsafe fn private_of(conn: &ffi::rdma_conn_param) -> Vec<u8> {
    if conn.private_data.is_null() {
        return Vec::new();
    }
    let len = usize::from(conn.private_data_len);
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(conn.private_data.cast::<u8>(), len) }.to_vec()
}

/// One end of a connection, a listener or a member of groups, with its queue pair if it has one.
pub(crate) struct Id {
    raw: NonNull<ffi::rdma_cm_id>,
    /// Held while there is a queue pair.
    queues: Option<Arc<Queues>>,
    _channel: Arc<EventChannel>,
}

// SAFETY: the library locks what it must; calls on an id may come from any thread.
unsafe impl Send for Id {}

impl Id {
    /// # Errors
    /// What the host says.
    pub(crate) fn new(channel: &Arc<EventChannel>, cookie: u64, space: Space) -> io::Result<Self> {
        let space = match space {
            Space::Connected => ffi::rdma_port_space::RDMA_PS_TCP,
            Space::Datagram => ffi::rdma_port_space::RDMA_PS_UDP,
        };
        let (mut raw, context) = (ptr::null_mut(), cookie as *mut _);
        // SAFETY: the channel is alive; the context is a number that nobody follows.
        check_errno(unsafe { ffi::rdma_create_id(channel.0.as_ptr(), &mut raw, context, space) })?;
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        Ok(Self::adopt(channel, raw))
    }

    fn adopt(channel: &Arc<EventChannel>, raw: NonNull<ffi::rdma_cm_id>) -> Self {
        Self { raw, queues: None, _channel: channel.clone() }
    }

    fn raw(&self) -> *mut ffi::rdma_cm_id {
        self.raw.as_ptr()
    }

    /// Names the id in its events.
    pub(crate) fn set_cookie(&mut self, cookie: u64) {
        // SAFETY: the id is alive, and only this thread uses it.
        unsafe { (*self.raw()).context = cookie as *mut _ };
    }

    /// # Errors
    /// What the host says.
    pub(crate) fn bind(&self, at: SocketAddr) -> io::Result<()> {
        let at = SockAddr::from(at);
        // SAFETY: the id is alive, and the call only reads the address.
        check_errno(unsafe { ffi::rdma_bind_addr(self.raw(), at.as_ptr().cast_mut().cast()) })
    }

    /// # Errors
    /// What the host says.
    pub(crate) fn listen(&self, backlog: i32) -> io::Result<()> {
        // SAFETY: the id is alive.
        check_errno(unsafe { ffi::rdma_listen(self.raw(), backlog) })
    }

    /// Starts to look for the device and the way to `to`, from an address of this side if given.
    ///
    /// # Errors
    /// What the host says when it cannot start.
    pub(crate) fn resolve_address(
        &self,
        from: Option<IpAddr>,
        to: SocketAddr,
        timeout_ms: i32,
    ) -> io::Result<()> {
        let from = from.map(|ip| SockAddr::from(SocketAddr::new(ip, 0)));
        let from = from.as_ref().map_or(ptr::null_mut(), |at| at.as_ptr().cast_mut().cast());
        let to = SockAddr::from(to);
        let to = to.as_ptr().cast_mut().cast();
        // SAFETY: the id is alive, and the call only reads the addresses.
        check_errno(unsafe { ffi::rdma_resolve_addr(self.raw(), from, to, timeout_ms) })
    }

    /// # Errors
    /// What the host says when it cannot start.
    pub(crate) fn resolve_route(&self, timeout_ms: i32) -> io::Result<()> {
        // SAFETY: the id is alive.
        check_errno(unsafe { ffi::rdma_resolve_route(self.raw(), timeout_ms) })
    }

    /// Whether its way goes through `device`.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        // SAFETY: the id is alive.
        ptr::eq(unsafe { (*self.raw()).verbs }, device.raw())
    }

    /// Bytes of the largest packet on its way, if its transport says so.
    pub(crate) fn path_mtu_bytes(&self) -> Option<usize> {
        // SAFETY: the id is alive, and so is its route, which has that many paths.
        let route = unsafe { &(*self.raw()).route };
        let path = NonNull::new(route.path_rec).filter(|_| route.num_paths > 0)?;
        // SAFETY: as above.
        mtu_bytes(u32::from(unsafe { path.as_ref() }.mtu))
    }

    /// The port of its device.
    pub(crate) fn port(&self) -> u8 {
        // SAFETY: the id is alive.
        unsafe { (*self.raw()).port_num }
    }

    /// Sets how long the peer's device may take to acknowledge before a message is sent again:
    /// 4.096 µs times two to this power. Old kernels cannot, which does no harm.
    pub(crate) fn set_ack_timeout(&self, power: u8) {
        let mut power = power;
        // SAFETY: the id is alive, and the option is one byte.
        let set = unsafe {
            let value = (&raw mut power).cast();
            ffi::rdma_set_option(self.raw(), OPTION_ID, OPTION_ACK_TIMEOUT, value, 1)
        };
        if let Err(error) = check_errno(set) {
            tracing::debug!(%error, "the acknowledgement time-out stays as it is");
        }
    }

    /// Makes the queue pair, and says how many bytes it takes inline.
    ///
    /// # Errors
    /// What the device says, for instance that a limit is too high.
    pub(crate) fn create_qp(&mut self, queues: &Arc<Queues>, plan: QpPlan) -> io::Result<usize> {
        let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let shares = plan.recv_depth == 0;
        let mut init = ffi::ibv_qp_init_attr {
            qp_context: ptr::null_mut(),
            send_cq: queues.cq(),
            recv_cq: queues.cq(),
            srq: if shares { queues.srq() } else { ptr::null_mut() },
            cap: ffi::ibv_qp_cap {
                max_send_wr: count(plan.send_depth),
                max_recv_wr: count(plan.recv_depth),
                max_send_sge: count(plan.sges),
                max_recv_sge: if shares { 0 } else { 1 },
                max_inline_data: count(plan.inline_bytes),
            },
            qp_type: if shares {
                ffi::ibv_qp_type::IBV_QPT_RC
            } else {
                ffi::ibv_qp_type::IBV_QPT_UD
            },
            sq_sig_all: 0,
        };
        // SAFETY: id and shared objects are alive, the latter as long as the queue pair.
        check_errno(unsafe { ffi::rdma_create_qp(self.raw(), queues.pd(), &mut init) })?;
        self.queues = Some(queues.clone());
        Ok((init.cap.max_inline_data as usize).min(plan.inline_bytes))
    }

    /// The number of its queue pair in completions.
    pub(crate) fn qp_number(&self) -> Option<u32> {
        // SAFETY: the queue pair of a live id is alive or null.
        unsafe { (*self.raw()).qp.as_ref() }.map(|qp| qp.qp_num)
    }

    /// # Errors
    /// What the host says.
    pub(crate) fn connect(&self, params: ConnParams<'_>) -> io::Result<()> {
        let mut raw = raw_params(params);
        // SAFETY: the id is alive, and the call copies what it is given.
        check_errno(unsafe { ffi::rdma_connect(self.raw(), &mut raw) })
    }

    /// # Errors
    /// What the host says.
    pub(crate) fn accept(&self, params: ConnParams<'_>) -> io::Result<()> {
        let mut raw = raw_params(params);
        // SAFETY: the id is alive, and the call copies what it is given.
        check_errno(unsafe { ffi::rdma_accept(self.raw(), &mut raw) })
    }

    /// Turns a request down, and tells the peer's provider why.
    pub(crate) fn reject(&self, private: &[u8]) {
        let len = u8::try_from(private.len()).unwrap_or(0);
        // SAFETY: the id is alive, and the call copies what it is given.
        let told = unsafe { ffi::rdma_reject(self.raw(), private.as_ptr().cast(), len) };
        if let Err(error) = check_errno(told) {
            tracing::debug!(%error, "the peer is not told why");
        }
    }

    /// Tells the peer that the connection ends, and has everything posted come back.
    pub(crate) fn disconnect(&self) {
        // SAFETY: the id is alive.
        if let Err(error) = check_errno(unsafe { ffi::rdma_disconnect(self.raw()) }) {
            // Both sides may do this at once.
            tracing::debug!(%error, "disconnected already");
        }
        // The call above does this, unless it failed first.
        self.fail_qp();
    }

    fn fail_qp(&self) {
        // SAFETY: zeroed memory is a valid value of this plain structure.
        let mut attr: ffi::ibv_qp_attr = unsafe { std::mem::zeroed() };
        attr.qp_state = ffi::ibv_qp_state::IBV_QPS_ERR;
        let mask = ffi::ibv_qp_attr_mask::IBV_QP_STATE.0 as i32;
        // SAFETY: the queue pair of a live id is alive or null.
        unsafe {
            let qp = (*self.raw()).qp;
            if !qp.is_null()
                && let Err(error) = check(ffi::ibv_modify_qp(qp, &mut attr, mask))
            {
                tracing::debug!(%error, "the queue pair does not take the error state");
            }
        }
    }

    /// Posts one request.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn post_one(&self, wr: Wr) -> io::Result<()> {
        let mut chain = Chain::default();
        chain.push(wr);
        self.post(&mut chain).1
    }

    /// Posts requests with one doorbell, and says how many the device took. The chain is empty
    /// afterwards.
    pub(crate) fn post(&self, chain: &mut Chain) -> (usize, io::Result<()>) {
        // SAFETY: the queue pair of a live id is alive or null.
        unsafe {
            let qp = (*self.raw()).qp;
            if qp.is_null() {
                chain.clear();
                return (0, Err(io::ErrorKind::NotConnected.into()));
            }
            chain.post(qp)
        }
    }

    /// Posts one receive of its own.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn post_recv(&self, recv: RecvWr) -> io::Result<()> {
        let mut sge = recv.to.raw();
        let mut raw = ffi::ibv_recv_wr {
            wr_id: recv.id,
            next: ptr::null_mut(),
            sg_list: &mut sge,
            num_sge: 1,
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair of a live id is alive or null; the call copies the request.
        unsafe {
            let qp = (*self.raw()).qp;
            if qp.is_null() {
                return Err(io::ErrorKind::NotConnected.into());
            }
            check(ffi::ibv_post_recv(qp, &mut raw, &mut bad))
        }
    }

    /// Joins a multicast group, in time.
    ///
    /// # Errors
    /// What the host says when it cannot start.
    pub(crate) fn join(&self, group: SocketAddr, cookie: u64) -> io::Result<()> {
        let group = SockAddr::from(group);
        let at = group.as_ptr().cast_mut().cast();
        // SAFETY: the id is alive; the call copies the address; the context is a number.
        check_errno(unsafe { ffi::rdma_join_multicast(self.raw(), at, cookie as *mut _) })
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// What the host says.
    pub(crate) fn leave(&self, group: SocketAddr) -> io::Result<()> {
        let group = SockAddr::from(group);
        // SAFETY: the id is alive, and the call only reads the address.
        check_errno(unsafe {
            ffi::rdma_leave_multicast(self.raw(), group.as_ptr().cast_mut().cast())
        })
    }

    /// The address of this side, as far as it is known.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        // SAFETY: the id is alive, and the library keeps its addresses in this union.
        unsafe { address(&(*self.raw()).route.addr.src_addr_union.src_storage) }
    }

    /// The peer's address, as far as it is known.
    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        // SAFETY: as above.
        unsafe { address(&(*self.raw()).route.addr.dst_addr_union.dst_storage) }
    }

    /// Destroys the queue pair. Afterwards the device touches nothing that was posted to it.
    ///
    /// # Errors
    /// What the device says; then it may still touch what was posted.
    pub(crate) fn destroy_qp(&mut self) -> io::Result<()> {
        // SAFETY: the queue pair of a live id is alive or null, and is destroyed once.
        unsafe {
            let qp = (*self.raw()).qp;
            if !qp.is_null() {
                check(ffi::ibv_destroy_qp(qp))?;
                (*self.raw()).qp = ptr::null_mut();
            }
        }
        self.queues = None;
        Ok(())
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        if let Err(error) = self.destroy_qp() {
            note_leak("a queue pair", &error);
            // What the queue pair is made from has to stay, too.
            std::mem::forget(self.queues.take());
            return;
        }
        // SAFETY: created once, destroyed once; its events are all acknowledged.
        if let Err(error) = check_errno(unsafe { ffi::rdma_destroy_id(self.raw()) }) {
            note_leak("a connection id", &error);
        }
    }
}

fn raw_params(params: ConnParams<'_>) -> ffi::rdma_conn_param {
    ffi::rdma_conn_param {
        private_data: params.private.as_ptr().cast(),
        private_data_len: u8::try_from(params.private.len()).unwrap_or(0),
        responder_resources: params.serves,
        initiator_depth: params.reads,
        flow_control: 1,
        retry_count: RETRIES,
        rnr_retry_count: RNR_RETRIES,
        srq: 1,
        qp_num: 0,
    }
}

/// # Safety
/// The storage must hold what a socket address of its family holds.
unsafe fn address<T>(storage: &T) -> Option<SocketAddr> {
    let mut copy = SockAddrStorage::zeroed();
    let len = size_of::<T>().min(size_of::<SockAddrStorage>());
    // SAFETY: both are plain bytes of at least that length.
    unsafe {
        let to = (&raw mut copy).cast::<u8>();
        ptr::copy_nonoverlapping(ptr::from_ref(storage).cast::<u8>(), to, len);
        SockAddr::new(copy, len as u32).as_socket()
    }
}
