package app

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

func TestAbsentServerIsToldOfUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		a := &absence{log: zerolog.New(&b)}
		told := func(after time.Duration) int {
			<-time.After(after)
			synctest.Wait()
			return strings.Count(b.String(), "the server is away since "+a.since.Format(time.TimeOnly))
		}
		a.begin()
		a.begin()
		if got := told(awayTold - time.Second); got != 0 {
			t.Errorf("told %d times too early", got)
		}
		if got := told(2*awayTold + 2*time.Second); got != 3 {
			t.Errorf("told %d times, want 3: %s", got, b.String())
		}
		a.end()
		a.end()
		if got := told(5 * awayTold); got != 3 {
			t.Errorf("told %d times of a server that is back", got)
		}
	})
}
