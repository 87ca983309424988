package sandbox

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// TestLimitsSpareTheStage has the runtime of the process that becomes the command under limits that it is over already: what it still wanted, a
// thread or memory, would end it. The more run side by side, the more it wants of both.
func TestLimitsSpareTheStage(t *testing.T) {
	commands := map[bool]int{false: 150, true: 20}[testing.Short()]
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			b, err := Open(Policy{Mode: "auto", Min: "limits", Limits: Limits{MemoryBytes: 1 << 20}})
			if err != nil {
				t.Error(err)
				return
			}
			defer b.Close()
			for range commands {
				var stderr bytes.Buffer
				cmd := exec.Command("true")
				cmd.Dir, cmd.Stderr = "/", &stderr
				p, err := b.Start(cmd)
				if err != nil {
					t.Error(err)
					return
				}
				if e, err := p.Wait(); err != nil || e.Code != 0 {
					t.Errorf("%+v, %v\n%s", e, err, strings.TrimSpace(stderr.String()))
				}
			}
		})
	}
	running.Wait()
}
