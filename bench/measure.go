package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// side is one of the two that a row compares: a process. count, where there is one, reads from its output how much it found.
type side struct {
	argv  []string
	dir   string
	stdin string
	count func(*tally) (int, error)
	codes []int // exit codes that are fine beside 0
	ready func() error
}

// row is a comparison that can be made.
type row struct {
	name    string
	against string
	target  float64 // the ratio that we want to stay within; 0: none is set
	sides   func(*lab) (ours, theirs side, err error)
}

// spread is of the ratios of neighbours.
type spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// result is a row that was measured. Memory is in bytes.
type result struct {
	Name         string  `json:"name"`
	Against      string  `json:"against,omitempty"`
	Target       float64 `json:"target,omitempty"`
	Rounds       int     `json:"rounds"`
	Ratio        spread  `json:"ratio"`
	OursMillis   float64 `json:"ours_ms"`
	TheirsMillis float64 `json:"theirs_ms"`
	CPURatio     float64 `json:"cpu_ratio"`
	OursMemory   int64   `json:"ours_memory_bytes"`
	TheirsMemory int64   `json:"theirs_memory_bytes"`
	Note         string  `json:"note,omitempty"`
}

// machine is where it was measured.
type machine struct {
	System     string  `json:"system"`
	Processors int     `json:"processors"`
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
}

func machineNow() machine {
	return machine{System: runtime.GOOS + " " + runtime.GOARCH, Processors: runtime.NumCPU(), LoadBefore: load()}
}

// load is the mean number of runnable processes over the last minute, -1 where the system does not tell.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return n
}

// cost is what one run of a side took.
type cost struct {
	wall, cpu time.Duration
	memory    int64 // bytes, of its largest process
}

// tally is what a side printed: how many lines, and how it begins. The whole is not kept: what this program holds when it starts another
// counts as the memory of that.
type tally struct {
	begin []byte
	lines int
	last  byte
}

func (t *tally) Write(p []byte) (int, error) {
	if room := 200 - len(t.begin); room > 0 {
		t.begin = append(t.begin, p[:min(room, len(p))]...)
	}
	if len(p) > 0 {
		t.last = p[len(p)-1]
	}
	t.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

// run starts the side, reads all that it prints and waits for it.
func (s side) run(ctx context.Context) (cost, *tally, error) {
	if s.ready != nil {
		if err := s.ready(); err != nil {
			return cost{}, nil, err
		}
	}
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Dir = s.dir
	cmd.Stdin = strings.NewReader(s.stdin)
	var said tally
	var complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complaint
	begun := time.Now()
	err := cmd.Run()
	c := cost{wall: time.Since(begun)}
	var exit *exec.ExitError
	if errors.As(err, &exit) && slices.Contains(s.codes, exit.ExitCode()) {
		err = nil
	}
	if err != nil {
		return c, nil, fmt.Errorf("%s: %w: %.300s", s.argv[0], err, complaint.String())
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.memory = int64(usage.Maxrss) << 10
	}
	return c, &said, nil
}

// measure checks that both sides find the same, then lets them run in turn.
func (l *lab) measure(ctx context.Context, r row) (result, error) {
	ours, theirs, err := r.sides(l)
	if err != nil {
		return result{}, err
	}
	out := result{Name: r.name, Against: r.against, Target: r.target}
	var found [2]int
	for i, s := range []side{ours, theirs} { // this also warms what either reads
		_, said, err := s.run(ctx)
		if err != nil {
			return result{}, err
		}
		if s.count != nil {
			if found[i], err = s.count(said); err != nil {
				return result{}, fmt.Errorf("%s: %w", s.argv[0], err)
			}
		}
	}
	if found[0] != found[1] {
		out.Note = fmt.Sprintf("they differ: ours finds %d, theirs %d", found[0], found[1])
	} else if ours.count != nil {
		out.Note = fmt.Sprintf("both find %d", found[0])
	}
	var ratios []float64
	var walls, cpus [2][]float64
	for range l.rounds {
		var pair [2]cost
		for i, s := range []side{ours, theirs} {
			c, _, err := s.run(ctx)
			if err != nil {
				return result{}, err
			}
			pair[i] = c
			walls[i] = append(walls[i], float64(c.wall.Microseconds())/1000)
			cpus[i] = append(cpus[i], c.cpu.Seconds())
		}
		ratios = append(ratios, pair[0].wall.Seconds()/pair[1].wall.Seconds())
		out.OursMemory, out.TheirsMemory = max(out.OursMemory, pair[0].memory), max(out.TheirsMemory, pair[1].memory)
	}
	out.Rounds = l.rounds
	out.Ratio = spread{slices.Min(ratios), median(ratios), slices.Max(ratios)}
	out.OursMillis, out.TheirsMillis = median(walls[0]), median(walls[1])
	if theirs := median(cpus[1]); theirs > 0 {
		out.CPURatio = median(cpus[0]) / theirs
	}
	return out, nil
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}
