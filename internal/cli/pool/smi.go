package pool

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/api/v1/pools"
)

// An smi is the program nvidia-smi. It may hang when a driver is ill, so it never has more than some time.
type smi struct {
	path  string
	limit time.Duration
}

// run returns what the program prints.
func (s smi) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.path, args...)
	cmd.WaitDelay = time.Second // a process that it left behind may hold its output open
	out, err := cmd.Output()
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		return "", fmt.Errorf("%s did not answer within %v", nvidiaSMI, s.limit)
	case err != nil:
		return "", fmt.Errorf("%s failed: %w", nvidiaSMI, err)
	}
	return string(out), nil
}

// A card is what nvidia-smi says of one card at some moment.
type card struct {
	pools.HostUnit
	percent   *int // nil: it does not say
	memory    int  // taken, in MiB
	processes []process
}

// A process uses a card.
type process struct {
	pid  int
	name string
}

const csv = "--format=csv,noheader,nounits"

// sample asks how the cards are used.
func (s smi) sample(ctx context.Context) ([]card, error) {
	table, err := s.run(ctx, "--query-gpu=uuid,name,memory.total,utilization.gpu,memory.used", csv)
	if err != nil {
		return nil, err
	}
	list, err := s.run(ctx, "-L")
	if err != nil {
		return nil, err
	}
	apps, err := s.run(ctx, "--query-compute-apps=gpu_uuid,pid,process_name", csv)
	if err != nil {
		return nil, err
	}
	cards, err := parseSample(table, instances(list))
	if err != nil {
		return nil, err
	}
	addProcesses(cards, apps)
	return cards, nil
}

// parseSample reads UUID, name, MiB of memory, percent of use and MiB that are taken of each card. What a card cannot
// tell is written in brackets, such as [N/A]. Of the instances of a card that is split nothing but the names is known.
func parseSample(table string, split map[string][]pools.HostUnit) (cards []card, err error) {
	for line := range strings.Lines(table) {
		fields := strings.Split(strings.TrimSpace(line), ", ")
		if len(fields) == 1 && fields[0] == "" {
			continue
		}
		if len(fields) != 5 {
			return nil, fmt.Errorf("%s said %.80q, which is not uuid, name, memory, use, memory used", nvidiaSMI,
				strings.TrimSpace(line))
		}
		units, err := parseCards(strings.Join(fields[:3], ", "), split)
		if err != nil {
			return nil, err
		}
		for _, unit := range units {
			c := card{HostUnit: unit}
			if len(split[fields[0]]) == 0 {
				c.percent, c.memory = percent(fields[3]), max(0, number(fields[4]))
			}
			cards = append(cards, c)
		}
	}
	return cards, nil
}

// percent reads how busy a card is; nil if that is not said.
func percent(text string) *int {
	if n := number(text); n >= 0 && n <= 100 {
		return &n
	}
	return nil
}

// number reads a number; -1 if there is none.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// addProcesses reads which processes use which cards: UUID, number and name, which may have commas in it. What is no
// such line is left out: a process that just ended is written in many ways.
func addProcesses(cards []card, apps string) {
	for line := range strings.Lines(apps) {
		fields := strings.SplitN(strings.TrimSpace(line), ", ", 3)
		if len(fields) < 2 || number(fields[1]) < 1 {
			continue
		}
		p := process{pid: number(fields[1])}
		if len(fields) == 3 {
			program, _, _ := strings.Cut(fields[2], " ")
			p.name = filepath.Base(program)
		}
		for i := range cards {
			if cards[i].Name == fields[0] {
				cards[i].processes = append(cards[i].processes, p)
			}
		}
	}
}
