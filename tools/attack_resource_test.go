//go:build linux

package tools

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/tools/sandbox"
)

// hog is a command that wants everything of one kind.
type hog struct {
	name, command string
	want          string // in the text of its end
	kernel        bool   // bound by limits that the kernel does not hold for uid 0
	secs          int    // that it has; 0: enough
}

func hogs() []hog {
	return []hog{
		{name: "fork bomb", command: `bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 2; echo over`, want: "over", kernel: true},
		{name: "memory of one process", command: `head -c 1000000000 /dev/zero | tail -c 900000000 >/dev/null`, want: "stderr"},
		{name: "memory of eight processes", command: `for i in 1 2 3 4 5 6 7 8; do (head -c 100000000 /dev/zero; sleep 20) | tail -c 100000000 >/dev/null & done; wait`, want: "killed (limit of memory: "},
		{name: "memory of a tmpfs", command: `head -c 1000000000 /dev/zero >/dev/shm/hog; df /dev/shm | tail -n 1`, want: "No space left"},
		{name: "one huge file", command: `head -c 1000000000 /dev/zero >huge; ls -l huge`, want: "100663296"},
		{name: "many files", command: `i=0; while :; do head -c 20000000 /dev/zero >many$i; i=$((i+1)); [ $i -lt 40 ] || { rm many*; sleep 1; i=0; }; done`, want: "killed (limit of disk: "},
		{name: "tiny files", command: `mkdir tiny; cd tiny; i=0; while :; do : >f$i; i=$((i+1)); done`, want: "killed (limit of disk: "},
		{name: "open files", command: `i=0; while [ $i -lt 100000 ]; do exec {fd}</dev/null || break; i=$((i+1)); done; echo "opened $i"`, want: "Too many open files"},
		{name: "endless output", command: `yes`, want: "killed (timed out after 3 s)", secs: 3},
		{name: "spinning processes", command: `for i in $(seq 100); do (while :; do :; done) & done; wait`, want: "killed (timed out after 3 s)", secs: 3},
	}
}

func hogLimits(c *Config) {
	c.Policy.Limits = sandbox.Limits{
		Processes: 400, MemoryBytes: 256 << 20, FileBytes: 96 << 20, OpenFiles: 1024, TmpBytes: 32 << 20, DiskBytes: 256 << 20, DiskFiles: 5_000,
	}
}

// TestHogsEndAndOthersGoOn runs each hog beside a second agent, which sees no error.
func TestHogsEndAndOthersGoOn(t *testing.T) {
	report := sandbox.Probe()
	if !strings.HasPrefix(report.Rung, "full") {
		t.Skipf("rung %s has no limits of its own uid or namespace", report.Rung)
	}
	for _, h := range hogs() {
		t.Run(h.name, func(t *testing.T) {
			if h.kernel && report.Rung != "full" {
				t.Skip("uid 0 is not bound by the kernel")
			}
			ended := make(chan Reply, 1)
			greedy, other := newSet(t, hogLimits), newSet(t)
			var running sync.WaitGroup
			running.Go(func() {
				ended <- call(t, greedy, "run_command", "command", h.command, "timeout_secs", cmp.Or(h.secs, 60))
			})
			r, beats := beside(t, other, ended)
			running.Wait()
			if !strings.Contains(r.Text, h.want) {
				t.Errorf("it ends with:\n%s", r.Text)
			}
			t.Logf("%d commands of the other agent meanwhile, median %v; %s", len(beats), median(beats), strings.SplitN(r.Text, "\n", 2)[0])
			if again := call(t, greedy, "run_command", "command", "echo fine"); !again.OK || !strings.Contains(again.Text, "fine") {
				t.Errorf("the next command of the same agent: %s", again.Text)
			}
		})
	}
}

// beside runs true ten times a second until the hog has ended.
func beside(t testing.TB, s *Set, ended <-chan Reply) (r Reply, beats []time.Duration) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		begun := time.Now()
		if r := call(t, s, "run_command", "command", "true"); !r.OK {
			t.Errorf("true, beside a hog: %s", r.Text)
		}
		beats = append(beats, time.Since(begun))
		select {
		case r := <-ended:
			return r, beats
		case <-tick.C:
		}
	}
}

func median(ds []time.Duration) time.Duration {
	ds = slices.Sorted(slices.Values(ds))
	return ds[len(ds)/2]
}

// BenchmarkBesideHogs tells by how much a hog slows the commands of a second agent, ten of them a second: median over the quiet median of the
// same moments. A hog that has ended runs again, until there are fifty commands beside it.
func BenchmarkBesideHogs(b *testing.B) {
	for _, h := range hogs() {
		b.Run(h.name, func(b *testing.B) {
			other := newSet(b)
			call(b, other, "run_command", "command", "true")
			for b.Loop() {
				pause := make(chan Reply, 1)
				time.AfterFunc(3*time.Second, func() { pause <- Reply{} })
				_, quiet := beside(b, other, pause)
				var loud []time.Duration
				for len(loud) < 50 {
					greedy, ended := newSet(b, hogLimits), make(chan Reply, 1)
					var running sync.WaitGroup
					running.Go(func() {
						ended <- call(b, greedy, "run_command", "command", h.command, "timeout_secs", cmp.Or(h.secs, 60))
					})
					_, beats := beside(b, other, ended)
					running.Wait()
					loud = append(loud, beats...)
				}
				b.ReportMetric(float64(median(quiet).Microseconds())/1000, "quiet-p50-ms")
				b.ReportMetric(float64(median(loud))/float64(median(quiet)), "ratio")
				b.ReportMetric(float64(len(loud)), "commands")
			}
		})
	}
}
