package board_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/board"
	"muster/board/boardtest"
	"muster/board/memory"
	"muster/board/secrets"
)

var roomy = memory.Limits{Items: 1000, Bytes: 1 << 20}

// remember saves a text.
func remember(t *testing.T, b *board.Board, project, text string, tags ...string) memory.Saved {
	t.Helper()
	s, err := b.Remember(boardtest.Context(t), project, memory.New(text, tags, memory.Author{Job: "j", Title: "the job", Profile: "general"}), roomy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// memories are the texts that a project remembers, the newest first.
func memories(t *testing.T, b *board.Board, project string) []string {
	t.Helper()
	all, err := b.Memories(boardtest.Context(t), project)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, m := range all {
		out = append(out, m.Text)
	}
	return out
}

func TestMemoriesAreSharedByAProject(t *testing.T) {
	srv := boardtest.Server(t)
	a, b := boardtest.Connect(t, srv.Conn(), board.Config{}), boardtest.Connect(t, srv.Conn(), board.Config{})
	if got := memories(t, b, "p"); len(got) != 0 {
		t.Errorf("a project without memories has %q", got)
	}
	if _, err := b.Forget(boardtest.Context(t), "p", "abcdef"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("forget on an empty board: %v", err)
	}
	first := remember(t, a, "p", "The API listens on port 8080.", "net")
	if first.Known || first.Total != 1 || first.Revision == 0 || first.Memory.Saved.IsZero() {
		t.Errorf("first save: %+v", first)
	}
	remember(t, a, "p", "Deploys happen on Thursday")
	remember(t, a, "other project", "Nothing of p")
	if diff := cmp.Diff([]string{"Deploys happen on Thursday", "The API listens on port 8080."}, memories(t, b, "p")); diff != "" {
		t.Error(diff)
	}
	again, err := b.Remember(boardtest.Context(t), "p", memory.New("the api listens on PORT 8080", []string{"net", "api"}, memory.Author{Job: "k"}), roomy)
	if err != nil || !again.Known || again.By.Job != "j" || !again.Memory.Saved.Equal(first.Memory.Saved) || again.Total != 2 {
		t.Errorf("the same sentence: %+v, %v", again, err)
	}
	if diff := cmp.Diff([]string{"api"}, again.Added); diff != "" {
		t.Error(diff)
	}
	all, err := a.Memories(boardtest.Context(t), "p")
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	m, err := memory.Find(all, first.ID)
	if err != nil || m.Text != "The API listens on port 8080." || !slices.Equal(m.Tags, []string{"net", "api"}) || m.By.Title != "the job" {
		t.Errorf("it stands as %+v, %v", m, err)
	}
	if s := remember(t, b, "p", "The API listens on port 8080", "api"); !s.Known || len(s.Added) != 0 {
		t.Errorf("nothing new: %+v", s)
	}
	if s := remember(t, b, "p", "The API listens on port 9090."); s.Known || len(s.Like) != 1 || s.Like[0].ID != first.ID {
		t.Errorf("one like it: %+v", s)
	}
}

func TestForgetIsForGood(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	ctx := boardtest.Context(t)
	s := remember(t, b, "p", "one")
	remember(t, b, "p", "two")
	if _, err := b.Forget(ctx, "elsewhere", s.ID); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("of another project: %v", err)
	}
	if _, err := b.Forget(ctx, "p", s.ID[:5]); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("by five digits: %v", err)
	}
	if m, err := b.Forget(ctx, "p", s.ID[:6]); err != nil || m.Text != "one" {
		t.Errorf("forget: %+v, %v", m, err)
	}
	if _, err := b.Forget(ctx, "p", s.ID); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
	if diff := cmp.Diff([]string{"two"}, memories(t, b, "p")); diff != "" {
		t.Error(diff)
	}
	if s := remember(t, b, "p", "one"); s.Known || s.Total != 2 {
		t.Errorf("saved again: %+v", s)
	}
	if diff := cmp.Diff([]string{"one", "two"}, memories(t, b, "p")); diff != "" {
		t.Error(diff)
	}
}

// Twenty agents on four connections say the same and different things at once: nothing is doubled or lost, and the limit is exact.
func TestSavesAtOnce(t *testing.T) {
	srv := boardtest.Server(t)
	var boards []*board.Board
	for range 4 {
		boards = append(boards, boardtest.Connect(t, srv.Conn(), board.Config{}))
	}
	const agents, limit = 20, 13
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh, full := 0, 0
	for i := range agents {
		wg.Go(func() {
			b := boards[i%len(boards)]
			s, err := b.Remember(boardtest.Context(t), "p", memory.New("We agree on this", []string{fmt.Sprint(i)}, memory.Author{Job: fmt.Sprint(i)}), memory.Limits{Items: limit, Bytes: 1 << 20})
			if err != nil {
				t.Errorf("agent %d: %v", i, err)
			}
			_, own := b.Remember(boardtest.Context(t), "p", memory.New(fmt.Sprintf("Fact number %d", i), nil, memory.Author{}), memory.Limits{Items: limit, Bytes: 1 << 20})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && !s.Known {
				fresh++
			}
			if errors.Is(own, memory.ErrFull) {
				full++
			} else if own != nil {
				t.Errorf("agent %d: %v", i, own)
			}
		})
	}
	wg.Wait()
	all, err := boards[0].Memories(boardtest.Context(t), "p")
	if err != nil || len(all) != limit || fresh != 1 || full != agents-(limit-1) {
		t.Errorf("%d memories, %d said to be new, %d refused, %v", len(all), fresh, full, err)
	}
	m, err := memory.Find(all, memory.New("We agree on this", nil, memory.Author{}).ID)
	if err != nil || len(m.Tags) != agents {
		t.Errorf("tags %v, %v", m.Tags, err)
	}
}

func TestMemoryLimits(t *testing.T) {
	b := boardtest.New(t, board.Config{})
	ctx := boardtest.Context(t)
	save := func(text string, l memory.Limits, tags ...string) error {
		_, err := b.Remember(ctx, "p", memory.New(text, tags, memory.Author{}), l)
		return err
	}
	tight := memory.Limits{Items: 2, Bytes: 10}
	if err := save("12345", tight); err != nil {
		t.Fatal(err)
	}
	if err := save("678901", tight); !errors.Is(err, memory.ErrFull) || !strings.Contains(err.Error(), "11 bytes of them, at most 10") {
		t.Errorf("too many bytes: %v", err)
	}
	if err := save("12345", tight, "123456"); !errors.Is(err, memory.ErrFull) {
		t.Errorf("too many bytes of tags: %v", err)
	}
	if err := save("67890", tight); err != nil {
		t.Errorf("just as many as fit: %v", err)
	}
	if err := save("x", memory.Limits{Items: 2, Bytes: 100}); !errors.Is(err, memory.ErrFull) || !strings.Contains(err.Error(), "it has 2") {
		t.Errorf("too many: %v", err)
	}
	if err := save("67890", memory.Limits{Items: 1, Bytes: 1}); err != nil {
		t.Errorf("what is known needs no room: %v", err)
	}
}

func TestMemoriesHoldNoSecrets(t *testing.T) {
	hidden, err := secrets.New(map[string]string{"DEPLOY": "hunter2-hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	b := boardtest.New(t, board.Config{Secrets: hidden})
	s, err := b.Remember(boardtest.Context(t), "p", memory.New("The password is hunter2-hunter2", []string{"hunter2-hunter2"}, memory.Author{Title: "use hunter2-hunter2"}), roomy)
	if err != nil || s.Text != "The password is [redacted DEPLOY]" || !slices.Equal(s.Tags, []string{"[redacted DEPLOY]"}) || s.By.Title != "use [redacted DEPLOY]" {
		t.Errorf("saved as %+v, %v", s, err)
	}
	if got := memories(t, b, "p"); strings.Contains(strings.Join(got, "\n"), "hunter2") {
		t.Errorf("it remembers %q", got)
	}
}
