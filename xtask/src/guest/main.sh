# The first process of the guest once the host's root is its own: makes the soft-RoCE link, runs
# the command, reports to the host how it ended, and turns the guest off.
. /run/guest/settings
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=~root

off() {
    sync
    echo o >/proc/sysrq-trigger
    # The first process must not end.
    while :; do sleep 60; done
}
give_up() {
    echo "failed $*" >&9
    off
}
must() { "$@" || give_up "\`$*\` ended with $? in the guest"; }

# The device of a port. The kernel hears of ports some time after it has the driver.
port() {
    while :; do
        for dir in /sys/class/virtio-ports/*; do
            [ "$(cat "$dir/name" 2>/dev/null)" != "$1" ] || { echo "/dev/${dir##*/}"; return; }
        done
        sleep 0.1
    done
}

# The kernel measures the processor's clock when it boots, and beside a busy host it may be wrong by
# a multiple. Where that of the board says so, another one is used.
seconds() { cat /sys/class/rtc/rtc0/since_epoch; }
next_second() {
    last=$(seconds)
    while [ "$(seconds)" = "$last" ]; do sleep 0.02; done
    read -r uptime rest </proc/uptime
    # Hundredths may begin with a zero, which is not meant to be octal.
    now=$((${uptime%.*} * 100 + 1${uptime#*.} - 100))
}
check_clock() {
    next_second
    start=$now
    next_second
    next_second
    next_second
    passed=$((now - start))
    if [ "$passed" -lt 200 ] || [ "$passed" -gt 450 ]; then
        echo "clock counts $passed in place of 300 hundredths: using hpet" >/dev/kmsg
        echo hpet >/sys/devices/system/clocksource/clocksource0/current_clocksource
    fi
}

exec 9>"$(port reports)"
exec </dev/null >"$(port output)" 2>"$(port errors)"

mkdir -p /lib/modules /share /dev/shm /dev/pts
must mount --bind "$MODULES" /lib/modules
must mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576,cache=none share /share
mount -t tmpfs shm /dev/shm
mount -t devpts devpts /dev/pts
mount -t debugfs debugfs /sys/kernel/debug
ulimit -l unlimited

check_clock &
clock_checker=$!
for module in veth sch_netem ib_uverbs rdma_ucm rdma_rxe; do
    must modprobe "$module"
done
ip link set lo up
if [ "$NETWORK" = wire ]; then
    must modprobe virtio_net
    must ip link set eth0 name roce0
else
    must ip link add roce0 type veth peer name roce1
    must ip addr add "$SPARE_ADDRESS/24" dev roce1
    must ip link set roce1 up
fi
must ip addr add "$ADDRESS/24" dev roce0
must ip link set roce0 up
must rdma link add rxe0 type rxe netdev roce0

# The kernel fills in the addresses of the link in its own time.
gid=/sys/class/infiniband/rxe0/ports/1/gids/1
polls=0
while ! grep -q ffff: "$gid" 2>/dev/null; do
    polls=$((polls + 1))
    [ "$polls" -lt 300 ] || give_up "rxe0 got no IPv4 address at GID index 1"
    sleep 0.1
done

wait $clock_checker
echo ready >&9
while sleep 1; do echo beat; done >&9 &
if [ "$NETWORK" = wire ]; then
    exec 8<"$(port orders)"
    . /run/guest/command
fi
sh /run/guest/command 9>&-
echo "exit $?" >&9
off
