#!/usr/bin/env bash
# Shares the cards of this machine for a moment, with a real server: says which there are, reports how they are used, and
# runs a command on one. It needs bin/leasehold and bash, prints what it saw, and ends by itself.
set -euo pipefail
cd "$(dirname "$0")/../.."

smi=${NVIDIA_SMI:-nvidia-smi}
if ! command -v "$smi" >/dev/null; then
	echo "left out: pool create, pool agent and pool run with real cards: there is no nvidia-smi here"
	exit 0
fi
bin=$PWD/bin/leasehold
if [[ ! -x $bin ]]; then
	echo "bin/leasehold is missing: run make build first" >&2
	exit 1
fi

dir=$(mktemp -d)
server=
finish() {
	if [[ -n $server ]]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap finish EXIT

"$bin" serve --data "$dir/data" --listen 127.0.0.1:0 >"$dir/log" 2>&1 &
server=$!
for _ in {1..100}; do
	address=$(grep -o 'http://127\.0\.0\.1:[0-9]*' "$dir/log" | head -n 1 || true)
	[[ -n $address ]] && break
	sleep 0.1
done
if [[ -z ${address:-} ]]; then
	cat "$dir/log" >&2
	exit 1
fi
export LEASEHOLD_SERVER=$address

step() {
	echo "\$ leasehold $*"
	timeout 120 "$bin" "$@"
}
step pool create gpu --from nvidia-smi
step pool agent gpu --once --nvidia-smi "$smi" -o json
step pool status gpu -o wide
free=$("$bin" pool status gpu -o json | tr ',{' '\n\n' | sed -n 's/^"free"://p' | head -n 1)
if [[ $free -lt 1 ]]; then
	echo "left out: pool run: no card is free, others are using them"
	exit 0
fi
step pool run gpu -n 1 --no-wait -- bash -c 'echo "cards: $CUDA_VISIBLE_DEVICES"; "$0" -L' "$smi"
step pool run gpu -n 1 --no-wait -- bash -c '
	"$0" --query-gpu=uuid,utilization.gpu,memory.used --format=csv,noheader -i "$CUDA_VISIBLE_DEVICES"' "$smi"
step pool agent gpu --once --nvidia-smi "$smi"
step holds gpu
echo "ok: $free free cards were seen"
