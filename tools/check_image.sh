#!/usr/bin/env bash
# Build the image without a daemon and run its service as the image says: as its user, on a read-only root, with a
# model and tokens from outside. Needs root, buildah and curl. BASE is the image to build on; without it a Debian
# with Python is made by mmdebstrap, for machines that reach no registry. Arguments go to `buildah build`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Mounts and processes of its own, which end with it.
[ "${OWN:-}" = yes ] || OWN=yes exec unshare --mount --pid --fork --kill-child tools/check_image.sh "$@"
work=$(mktemp -d)
store=${BUILDAH_ROOT:-$work/store}
image() { buildah --storage-driver vfs --root "$store" "$@"; }
cleanup() {
    umount --recursive --lazy "$work/root" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT

if [ -z "${BASE:-}" ]; then
    BASE=localhost/python-base
    mkdir "$work/base"
    mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$work/base/root.tar"
    printf 'FROM scratch\nADD root.tar /\n' | image build --quiet --isolation chroot -f - -t "$BASE" "$work/base"
fi
image build --quiet --layers --format docker --isolation chroot --build-arg "BASE=$BASE" "$@" -t longtail .

# A model of a few texts, made by the image itself, and a token file that its user alone may read.
container=$(image from longtail)
root=$(image mount "$container")
mkdir -m 755 "$work/root" && install -d -o 10001 "$work/models" "$work/secrets"
mount --bind "$root" "$work/root" && mount -o remount,bind,ro "$work/root"
mount -t proc proc "$work/root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$work/root/tmp"
mkdir -p "$root/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$work/root/dev/shm"
mount -t tmpfs tmpfs "$work/root/run" && mkdir "$work/root/run/secrets"
mount --bind "$work/models" "$work/root/models"
printf 'teach ann check-of-the-image-0123456789abcdef\n' > "$work/secrets/tokens"
chown 10001 "$work/secrets/tokens" && chmod 600 "$work/secrets/tokens"
mount --bind "$work/secrets" "$work/root/run/secrets"
run() {
    env -i PATH=/opt/longtail/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp NUMBA_CPU_NAME=generic PYTHONDONTWRITEBYTECODE=1 \
        "$(command -v chroot)" --userspec=10001:10001 "$work/root" "$@"
}
{ echo text,label; for i in $(seq 20); do echo "brown bear $i,bear"; echo "red fox $i,fox"; done; } > "$work/models/train.csv"
run sh -c 'test "$(id -u)" = 10001 && ! touch /opt/longtail/x 2>/dev/null' # neither root nor a writable root
run longtail warmup --json | grep '"compiled": 0' # the image brings all kernels
run longtail fit --quiet /models/train.csv --text text --label label -o /models/model.longtail
run longtail serve /models/model.longtail --host 0.0.0.0 --port 8089 --tokens /run/secrets/tokens &
for _ in $(seq 120); do curl --silent --fail --output /dev/null http://127.0.0.1:8089/health/ready && break; sleep 0.5; done
ask() { curl --silent --fail -H 'Authorization: Bearer check-of-the-image-0123456789abcdef' -H 'Content-Type: application/json' "http://127.0.0.1:8089$1" -d "$2"; }
ask /v1/predict '{"documents": ["a brown bear"]}' | grep '"bear"'
ask /v1/teach '{"documents": [{"text": "an owl hoots", "label": "owl"}], "version": "*"}'
ask /v1/predict '{"documents": ["it hoots"]}' | grep '"owl"'
echo "The image works."
