# The first process of the guest: lays a writable overlay over the host's root and moves there.
# Runs in the initramfs, where busybox is all there is.
export PATH=/bin
die() { echo "guest: $*" >/dev/kmsg; sleep 1; echo c >/proc/sysrq-trigger; }

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in /modules/*.ko; do
    insmod "$module" || die "no module $module"
done

mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=1048576,cache=loose hostroot /host ||
    die "cannot mount the host's root"
mount -t tmpfs -o size=80% memory /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work overlay /new ||
    die "cannot lay the overlay"

mkdir -p /new/proc /new/sys /new/dev /new/run
for dir in proc sys dev; do
    mount --move /$dir /new/$dir
done
mount -t tmpfs run /new/run
mkdir /new/run/guest
cp /main.sh /settings /command /new/run/guest/
exec switch_root /new /bin/sh /run/guest/main.sh
