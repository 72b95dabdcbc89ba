package pool

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/cli"
)

// nvidiaSMI is the word for --from that reads the cards of this machine.
const nvidiaSMI = "nvidia-smi"

// inventory reads units from nvidia-smi, a file or standard input.
func inventory(ctx context.Context, from string, stdin io.Reader) ([]pools.HostUnit, error) {
	switch from {
	case nvidiaSMI:
		return cards(ctx)
	case "-":
		return readUnits(stdin)
	}
	file, err := os.Open(from)
	if err != nil {
		return nil, cli.Usage("--from %s cannot be read: %v", from, err)
	}
	defer file.Close()
	return readUnits(file)
}

// readUnits reads a unit in each line: its name, then labels as key=value. Empty lines and those that begin with # are
// left out.
func readUnits(r io.Reader) (units []pools.HostUnit, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		unit := pools.HostUnit{Name: words[0], Labels: map[string]string{}}
		for _, word := range words[1:] {
			key, value, ok := strings.Cut(word, "=")
			if !ok || key == "" {
				return nil, cli.Usage("line %d: %q is no label: write NAME key=value key=value", n, word)
			}
			unit.Labels[key] = value
		}
		units = append(units, unit)
	}
	return units, lines.Err()
}

// The names of units are UUIDs and not indices: an index depends on the order in which the driver finds the cards, and
// another card may have it after a restart. CUDA_VISIBLE_DEVICES takes both.

// cards asks nvidia-smi for the cards of this machine. A card that is split by MIG is as many units as it has
// instances: the whole card cannot be used then.
func cards(ctx context.Context) ([]pools.HostUnit, error) {
	program := smi{nvidiaSMI, largestWait}
	table, err := program.run(ctx, "--query-gpu=uuid,name,memory.total", csv)
	if err != nil {
		return nil, err
	}
	list, err := program.run(ctx, "-L")
	if err != nil {
		return nil, err
	}
	return parseCards(table, instances(list))
}

// parseCards reads what nvidia-smi says of each card: UUID, name and MiB of memory.
func parseCards(table string, split map[string][]pools.HostUnit) (units []pools.HostUnit, err error) {
	for line := range strings.Lines(table) {
		fields := strings.Split(strings.TrimSpace(line), ", ")
		if len(fields) == 1 && fields[0] == "" {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("nvidia-smi said %q, which is not uuid, name, memory", strings.TrimSpace(line))
		}
		labels := map[string]string{"model": model(fields[1]), "name": fields[1]}
		if mib, err := strconv.ParseFloat(fields[2], 64); err == nil {
			labels["memory"] = strconv.Itoa(int(math.Round(mib / 1024)))
		}
		if parts := split[fields[0]]; len(parts) > 0 {
			for _, part := range parts {
				part.Labels["model"], part.Labels["card"] = labels["model"], fields[0]
				units = append(units, part)
			}
			continue
		}
		units = append(units, pools.HostUnit{Name: fields[0], Labels: labels})
	}
	return units, nil
}

// model returns the short name of a card, for people to type: H100 of "NVIDIA H100 80GB HBM3". It is the first word
// with a digit in it, up to a hyphen.
func model(name string) string {
	for word := range strings.FieldsSeq(name) {
		if strings.ContainsAny(word, "0123456789") {
			short, _, _ := strings.Cut(word, "-")
			return short
		}
	}
	return name
}

// instances reads which MIG instances each card has, from nvidia-smi -L:
//
//	GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c)
//	  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef)
func instances(list string) map[string][]pools.HostUnit {
	split := map[string][]pools.HostUnit{}
	card := ""
	for line := range strings.Lines(list) {
		_, rest, ok := strings.Cut(line, "(UUID: ")
		uuid, _, closed := strings.Cut(rest, ")")
		words := strings.Fields(line)
		switch {
		case !ok || !closed || len(words) < 2:
		case words[0] == "MIG":
			split[card] = append(split[card], pools.HostUnit{Name: uuid, Labels: map[string]string{"mig": words[1]}})
		default:
			card = uuid
		}
	}
	return split
}
