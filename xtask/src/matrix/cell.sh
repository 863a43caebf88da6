# Runs cells in a guest: the programs of this project, each with the user space of a stack as its
# root. What a step writes goes to files named after it, and how it ended to `ended`.
#
# Set before: RESULTS, PROGRAMS, COMMIT, DEVICE, DRIVER, INTERFACE, ADDRESS,
# DRIVERS.

step() { # NAME SECONDS COMMAND...
    name=$1 limit_s=$2
    shift 2
    timeout -k 10 "$limit_s" chroot "$ROOT" "$@" >"$OUT/$name.out" 2>"$OUT/$name.err"
    echo "$name $?" >>"$OUT/ended"
}

doctor() { # NAME
    step "$1" 60 /programs/fabric doctor --json
}

enter() { # DIRECTORY...
    for dir; do
        mkdir -p "$ROOT/$dir" && mount --rbind "/$dir" "$ROOT/$dir"
    done
    mkdir -p "$ROOT/tmp" "$ROOT/programs" "$ROOT/lib/modules"
    mount --bind "$PROGRAMS" "$ROOT/programs"
    mount --bind /lib/modules "$ROOT/lib/modules"
}

# A device whose driver is not installed.
without_driver() {
    mv "$ROOT/$DRIVERS/lib$DRIVER-rdmav"*.so /run/
    doctor no-driver
    mv "/run/lib$DRIVER-rdmav"*.so "$ROOT/$DRIVERS/"
}

# A device whose driver is of another rdma-core, as in containers that were put together by hand.
with_strange_driver() { # ROOT OF THE OTHER
    mv "$ROOT/$DRIVERS/lib$DRIVER-rdmav"*.so /run/
    cp "$1/$DRIVERS/lib$DRIVER-rdmav"*.so "$ROOT/$DRIVERS/"
    doctor strange-driver
    rm "$ROOT/$DRIVERS/lib$DRIVER-rdmav"*.so
    mv "/run/lib$DRIVER-rdmav"*.so "$ROOT/$DRIVERS/"
}

# A device whose file was not passed to a container.
without_device_file() {
    for dir in /sys/class/infiniband_verbs/uverbs*; do
        [ "$(cat "$dir/ibdev")" = "$DEVICE" ] && file=${dir##*/}
    done
    mv "/dev/infiniband/$file" "/dev/$file.away"
    doctor no-device-file
    mv "/dev/$file.away" "/dev/infiniband/$file"
}

make_device() {
    rdma link add "$DEVICE" type "$DRIVER" netdev "$INTERFACE" || return
    port=/sys/class/infiniband/$DEVICE/ports/1
    for poll in $(seq 300); do
        if grep -q ACTIVE "$port/state" &&
            { [ "$DRIVER" = siw ] || grep -qs ffff: "$port/gids/1"; }; then
            return
        fi
        sleep 0.1
    done
    echo "$DEVICE is not up: $(cat "$port/state")"
    return 1
}

# Counters and whatever else the cell before left stay with its device. If there is no other one, the
# doctor says so.
fresh_device() {
    [ -z "$used" ] || { rdma link del "$DEVICE" && make_device; }
    used=yes
}

cell() { # NAME ROOT ROOT-OF-A-STRANGER
    ROOT=$2 OUT=$RESULTS/$1
    mkdir -p "$OUT"
    echo "cell $1" >&2
    fresh_device
    read -r began rest </proc/uptime
    date +%s >"$OUT/taken_at"
    echo "$COMMIT" >"$OUT/commit"
    enter proc sys dev share
    doctor doctor
    export FABRIC_VERBS_DEVICE="$DEVICE" FABRIC_REQUIRE_VERBS=1
    export FABRIC_CONFORMANCE_LEDGER="$OUT/ledger.jsonl"
    step conformance 300 /programs/conformance --test-threads=3 verbs::
    unset FABRIC_VERBS_DEVICE FABRIC_REQUIRE_VERBS FABRIC_CONFORMANCE_LEDGER
    step patterns 150 /programs/fabric demo --addr "verbs://$ADDRESS" --timeout 2m
    step libfabric 150 /programs/fabric demo --addr "ofi+verbs://$ADDRESS" --timeout 2m
    without_driver
    with_strange_driver "$3"
    without_device_file
    read -r now rest </proc/uptime
    echo "$((${now%.*} - ${began%.*}))" >"$OUT/seconds"
    : >"$OUT/done"
}

# The kernel's iWARP in place of its RoCE.
siw() { # MODULE
    rdma link del rxe0 && modprobe libcrc32c && insmod "$1" && make_device
}

prepared() { # COMMAND...
    "$@" >"$RESULTS/prepared" 2>&1 && return
    dmesg | tail -n 5 >>"$RESULTS/prepared"
    : >"$RESULTS/unprepared"
    exit 1
}

used=
mkdir -p "$RESULTS"
uname -r >"$RESULTS/release"
uname -v >"$RESULTS/version"
