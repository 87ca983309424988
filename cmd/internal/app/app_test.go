package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
	"pgregory.net/rapid"

	"muster/board"
)

func TestReportMapsErrorsToCodes(t *testing.T) {
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(&Interrupt{syscall.SIGTERM})
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		code int
		says string
	}{
		{"none", t.Context(), nil, 0, ""},
		{"none after a signal", stopped, nil, 0, ""},
		{"plain", t.Context(), errors.New("no luck"), 1, "prog: no luck\n"},
		{"usage", t.Context(), Usage("bad %s", "flag"), 2, "prog: bad flag\n"},
		{"silent", t.Context(), Ended([]board.Entry{{State: board.Partial}}), 3, ""},
		{"connect", t.Context(), unreachable(t.Context(), errors.New("gone")), 5, "prog: cannot connect: gone\n"},
		{"not found", t.Context(), fmt.Errorf("job x: %w", board.ErrNotFound), 1, "orchestrator list"},
		{"not finished", t.Context(), board.ErrNotFinished, 1, "--wait"},
		{"ambiguous", t.Context(), board.ErrAmbiguous, 1, "more characters"},
		{"interrupted", stopped, context.Canceled, 143, ""},
		{"broken off by a signal", stopped, errors.New("read: cancelled"), 143, ""},
		{"usage in spite of a signal", stopped, Usage("bad"), 2, "bad"},
		{"reader gone", t.Context(), fmt.Errorf("write: %w", syscall.EPIPE), 141, ""},
		{"control characters", t.Context(), errors.New("a\x1b[2Jb\u202ec"), 1, "prog: abc\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if got := Report(tt.ctx, &b, "prog", tt.err); got != tt.code {
				t.Errorf("code %d, want %d", got, tt.code)
			}
			if tt.says == "" && b.Len() > 0 || !strings.Contains(b.String(), tt.says) {
				t.Errorf("says %q, want %q", b.String(), tt.says)
			}
		})
	}
}

func TestEndedTakesTheGravest(t *testing.T) {
	for _, tt := range []struct {
		states []board.State
		code   int
	}{
		{[]board.State{board.Done, board.Done}, 0},
		{[]board.State{board.Done, board.Partial}, 3},
		{[]board.State{board.Killed, board.Partial}, 4},
		{[]board.State{board.Partial, board.Lost, board.Killed}, 1},
		{[]board.State{board.Denied}, 1},
	} {
		var es []board.Entry
		for _, s := range tt.states {
			es = append(es, board.Entry{State: s})
		}
		got := exitDone
		var f *Fault
		if errors.As(Ended(es), &f) {
			got = f.Code
		}
		if got != tt.code {
			t.Errorf("%v: %d, want %d", tt.states, got, tt.code)
		}
	}
}

func TestReorder(t *testing.T) {
	flags := []cli.Flag{&cli.BoolFlag{Name: "json"}, &cli.StringFlag{Name: "dir", Aliases: []string{"d"}}, &cli.IntFlag{Name: "slots"}}
	for _, tt := range []struct{ in, want string }{
		{"prompt --dir x --json", "--dir x --json -- prompt"},
		{"a -d x b", "-d x -- a b"},
		{"a --dir=x -slots 3", "--dir=x -slots 3 -- a"},
		{"-- --json", "-- --json"},
		{"a -- --dir x", "-- a --dir x"},
		{"- --json", "--json -- -"},
		{"a --nope b", "--nope -- a b"},
		{"--dir", "--dir"},
	} {
		got := strings.Join(reorder(flags, strings.Fields(tt.in)), " ")
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestRunRefusesWhatTheParserLetsThrough(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		ran  string
	}{
		{"p", 2, ""},
		{"p nope", 2, ""},
		{"p list --nope", 2, ""},
		{"p list extra", 2, ""},
		{"p show a --json", 0, "[a] true"},
		{"p show --json a", 0, "[a] true"},
		{"p show help", 0, "[help] false"},
		{"p show -- --json", 0, "[--json] false"},
		{"p show a --tag x,y --tag z", 0, "[a] false x,y z"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			ran := ""
			action := func(c *cli.Context) error {
				ran = strings.TrimSpace(fmt.Sprintf("%v %v %s", c.Args().Slice(), c.Bool("json"), strings.Join(c.StringSlice("tag"), " ")))
				return nil
			}
			flags := func() []cli.Flag { return []cli.Flag{JSONFlag(), &cli.StringSliceFlag{Name: "tag"}} }
			p := &cli.App{Name: "p", Commands: []*cli.Command{
				{Name: "list", Flags: flags(), Action: action},
				{Name: "show", ArgsUsage: "ID", Flags: flags(), Action: action},
			}}
			if got := Run(t.Context(), p, strings.Fields(tt.args)); got != tt.code || ran != tt.ran {
				t.Errorf("code %d, ran %q; want %d, %q", got, ran, tt.code, tt.ran)
			}
		})
	}
}

func TestProjectIsTheRepositoryAround(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(root, "my repo!")
	sub := filepath.Join(repo, "a", "b")
	if err := errors.Join(os.MkdirAll(sub, 0o700), os.Mkdir(filepath.Join(repo, ".git"), 0o700)); err != nil {
		t.Fatal(err)
	}
	a, err := FindProject(repo)
	if err != nil {
		t.Fatal(err)
	}
	b, err := FindProject(sub)
	if err != nil {
		t.Fatal(err)
	}
	if a.Root != repo || b.Root != repo || b.Dir != sub {
		t.Errorf("roots %q and %q", a.Root, b.Root)
	}
	if a.Name != b.Name || !strings.HasPrefix(a.Name, "my-repo-") || strings.ContainsAny(a.Name, " !/") {
		t.Errorf("names %q and %q", a.Name, b.Name)
	}
	other, err := FindProject(root)
	if err != nil {
		t.Fatal(err)
	}
	if other.Name == a.Name || other.Root != root {
		t.Errorf("another folder: %+v", other)
	}
	if _, err := FindProject(filepath.Join(root, "none")); err == nil {
		t.Error("a folder that is not there was taken")
	}
}

func TestRedactHidesSecrets(t *testing.T) {
	for in, want := range map[string]string{
		"nats://user:secret@host:4222":           "nats://xxxxx@host:4222",
		"nats://token@host":                      "nats://xxxxx@host",
		"nats://a:secret@h1, nats://b:secret@h2": "nats://xxxxx@h1,nats://xxxxx@h2",
		"host:4222":                              "host:4222",
		"nats://user:sec%ret@host":               "host",
		"nats://user:s%@cret@host":               "host",
	} {
		if got := redact(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestJSONStaysTheSameAndSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]string{"k": rapid.String().Draw(t, "s") + rapid.SampledFrom([]string{"", "\u009b2J", "\u202e", "\U000e0041", "\x7f", "\u2028", "👩‍👩‍👧"}).Draw(t, "x")}
		var b bytes.Buffer
		if err := (Out{W: &b}).Value(in); err != nil {
			t.Fatal(err)
		}
		var out map[string]string
		if err := json.Unmarshal(b.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, out); diff != "" {
			t.Fatal(diff)
		}
		if strings.ContainsFunc(b.String(), obeyed) {
			t.Fatalf("unsafe: %q", b.String())
		}
	})
}

func TestTextIsSanitisedOnATerminalOnly(t *testing.T) {
	const raw = "a\x1b]52;c;AAAA\x07b\rc\u202ed\u200be\x00"
	var file, screen bytes.Buffer
	if err := errors.Join((Out{W: &file}).Text(raw), (Out{W: &screen, Terminal: true}).Text(raw)); err != nil {
		t.Fatal(err)
	}
	if file.String() != raw {
		t.Errorf("a file gets %q", file.String())
	}
	if got := screen.String(); strings.ContainsAny(got, "\x1b\r\x00\u202e\u200b") || !strings.HasSuffix(got, "\n") {
		t.Errorf("a terminal gets %q", got)
	}
}

func TestTableAlignsWideLetters(t *testing.T) {
	got := FormatTable([]string{"A", "B"}, [][]string{{"漢字", "x"}, {"abc", "y"}}, 0)
	want := []string{"A     B", "漢字  x", "abc   y"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := FormatTable(nil, [][]string{{"abcdef", "ghij"}}, 8)[0]; got != "abcdef …" {
		t.Errorf("cut to %q", got)
	}
}

func TestConnectionRefusesContradictions(t *testing.T) {
	for _, tt := range []struct {
		args string
		ok   bool
	}{
		{"p", true},
		{"p --connect nats://h", true},
		{"p --connect h1:4222,tls://h2,[::1]:4222", true},
		{"p --connect nats://user:p%40ss@h", true},
		{"p --connect http://h", false},
		{"p --connect nats://h:99999", false},
		{"p --connect nats://h:x", false},
		{"p --connect nats://h,", false},
		{"p --connect nats://h --connect-wait -1s", false},
		{"p --data d", true},
		{"p --connect nats://h --data d", false},
		{"p --creds f", false},
		{"p --lease 10ms", false},
		{"p --lease 1s", true},
	} {
		t.Setenv("NATS_URL", "")
		code := Run(t.Context(), &cli.App{Name: "p", Flags: append(ConnectFlags(0), &cli.StringFlag{Name: "data"}), Action: func(c *cli.Context) error {
			_, err := ConnectionOf(c)
			return err
		}}, strings.Fields(tt.args))
		if (code == 0) != tt.ok || !tt.ok && code != ExitUsage {
			t.Errorf("%s: code %d", tt.args, code)
		}
	}
}
