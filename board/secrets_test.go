package board_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"muster/board"
	"muster/board/boardtest"
	"muster/board/secrets"
)

const (
	hostSecret = "Hq7/host+secret-0123456789=="
	jobSecret  = `Jq"7\job <secret> & 0123456789`
)

// forms are the ways in which the planted secrets must not be found.
func forms(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, v := range []string{hostSecret, jobSecret} {
		quoted, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted))
		for _, f := range []string{v, strings.Trim(string(quoted), `"`), strings.Trim(plain, `"`), hex.EncodeToString([]byte(v)), base64.StdEncoding.EncodeToString([]byte(v)), v[:len(v)/2+3], v[len(v)/2-3:]} {
			all[f] = v
		}
	}
	return all
}

// storeHolds says which of the planted secrets any file of a server's folder holds.
func storeHolds(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	bytes := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // of a server that works
		}
		bytes += len(data)
		for f := range forms(t) {
			if strings.Contains(string(data), f) || strings.Contains(p, f) {
				found = append(found, fmt.Sprintf("%s: %s", filepath.Base(p), f))
			}
		}
		return err
	})
	if err != nil || bytes < 10_000 {
		t.Fatalf("look at the store: %d bytes, %v", bytes, err)
	}
	return found
}

func TestNoSecretIsStored(t *testing.T) {
	r, err := secrets.New(map[string]string{"HOST": hostSecret})
	if err != nil {
		t.Fatal(err)
	}
	s := boardtest.Server(t)
	b := boardtest.Connect(t, s.Conn(), board.Config{Secrets: r, Log: zerolog.Nop()})
	both := "text " + hostSecret + " and " + jobSecret + " end"
	long := strings.Repeat("x", 490) + hostSecret + strings.Repeat(" line of a long result\n", 40_000) + jobSecret
	entered := make(chan *board.Lease, 1)
	release := make(chan struct{})
	boardtest.Serve(t, b, board.Worker{Name: "worker " + hostSecret, Version: "v " + hostSecret, Sandbox: board.Sandbox{Rung: "full", Open: []string{hostSecret}}}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if got := l.Job().Prompt; got != "use "+both {
			return board.Result{}, fmt.Errorf("the handler's prompt is %q", got)
		}
		l.Update(func(e *board.Entry) { e.LastTool = "tool " + both })
		data := map[string]string{"plain": both, "base64": base64.StdEncoding.EncodeToString([]byte(both)), "hex": hex.EncodeToString([]byte(both)), both: "key"}
		if err := l.Append(ctx, "planted", data); err != nil {
			return board.Result{}, err
		}
		switch l.Job().Name {
		case "fails":
			return board.Result{}, errors.New("no luck with " + both)
		case "binary":
			return board.Result{State: board.Done, Text: "\xff\xfe " + both}, nil
		case "long":
			return board.Result{State: board.Done, Text: long}, nil
		case "waits":
			entered <- l
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return board.Result{State: board.Failed, Text: both, Error: "failed: " + both, Stat: []board.FileStat{{Path: "dir/" + hostSecret}}, Facts: json.RawMessage(`{"left":"` + hostSecret + `"}`)}, nil
	})
	var jobs []board.Job
	for _, name := range []string{"ends", "fails", "binary", "long", "waits"} {
		jobs = append(jobs, board.Job{
			Name: name, Title: "title " + both, Prompt: "use " + both, Attempts: 2, Env: map[string]string{"DB_PASSWORD": jobSecret, "PIN_TOKEN": "1234"},
			Steps: []board.Step{{Title: "step " + both, Tool: "x"}},
		})
	}
	entries, err := b.Submit(t.Context(), jobs...)
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	if workers, err := b.Workers(t.Context()); err != nil || len(workers) != 1 || !strings.Contains(fmt.Sprint(workers), "[redacted HOST]") {
		t.Errorf("workers %v, %v", workers, err)
	}
	close(release)
	if _, err := b.Kill(t.Context(), "because of "+hostSecret, entries[4].ID); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	ended, err := b.Wait(boardtest.Context(t), ids...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ended {
		checkShown(t, b, e)
	}
	if r, err := b.Collect(t.Context(), ids[3]); err != nil || r.Text != strings.NewReplacer(hostSecret, "[redacted HOST]", jobSecret, "[redacted DB_PASSWORD]").Replace(long) || int64(len(r.Text)) != ended[3].ResultLen {
		t.Errorf("the long result has %d bytes, the entry says %d, %v", len(r.Text), ended[3].ResultLen, err)
	}
	found := storeHolds(t, filepath.Dir(s.KeyFile()))
	if len(found) == 0 {
		t.Error("the prompts are not in the store either: these are not its bytes")
	}
	for _, f := range found {
		if !specHolds(t, s.KeyFile(), f) {
			t.Errorf("the store holds %s", f)
		}
	}
}

// specHolds says that what was found stands within specifications only, which keep prompts and environments as they are.
func specHolds(t *testing.T, keyFile, found string) bool {
	t.Helper()
	name, form, _ := strings.Cut(found, ": ")
	var rest strings.Builder
	err := filepath.WalkDir(filepath.Dir(keyFile), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(p) != name {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		// A specification is one JSON object on the disk, from its kind on; what else a block holds is everything around.
		text := string(data)
		for {
			i := strings.Index(text, `"kind":"spec"`)
			if i < 0 {
				break
			}
			rest.WriteString(text[:i])
			dec := json.NewDecoder(strings.NewReader("{" + text[i:]))
			var skipped json.RawMessage
			if err := dec.Decode(&skipped); err != nil {
				return fmt.Errorf("specification in %s: %w", p, err)
			}
			text = text[i-1+int(dec.InputOffset()):]
		}
		rest.WriteString(text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(rest.String(), form)
}

// checkShown looks at everything that people are shown of a job.
func checkShown(t *testing.T, b *board.Board, e board.Entry) {
	t.Helper()
	res, err := b.Collect(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := b.Spec(t.Context(), e.ID)
	if err != nil || !strings.Contains(spec.Prompt, hostSecret) || spec.Env["DB_PASSWORD"] != jobSecret {
		t.Errorf("%s: the specification cannot be run: %+v, %v", e.Name, spec, err)
	}
	if spec.Title != "title text [redacted HOST] and [redacted DB_PASSWORD] end" {
		t.Errorf("title of the specification: %q", spec.Title)
	}
	if got := b.Shown(spec); got.Env["PIN_TOKEN"] != "[redacted PIN_TOKEN]" || got.Prompt != "use text [redacted HOST] and [redacted DB_PASSWORD] end" || got.ID != spec.ID {
		t.Errorf("%s: shown %+v", e.Name, got)
	}
	var events []board.Event
	if err := b.Events(t.Context(), e.ID, false, func(ev board.Event) error { events = append(events, b.ShownEvent(ev)); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, shown := range []struct {
		what string
		v    any
	}{{"entry", e}, {"result", res}, {"spec", b.Shown(spec)}, {"events", events}} {
		data, err := json.Marshal(shown.v)
		if err != nil {
			t.Fatal(err)
		}
		for f := range forms(t) {
			if strings.Contains(string(data), f) {
				t.Errorf("%s: the %s holds %q: %.2000s", e.Name, shown.what, f, data)
			}
		}
		if !strings.Contains(string(data), "[redacted HOST]") {
			t.Errorf("%s: the %s says nothing of what was there: %.2000s", e.Name, shown.what, data)
		}
	}
}

func TestNamesWithSecretsAreRefused(t *testing.T) {
	r, err := secrets.New(map[string]string{"HOST": hostSecret})
	if err != nil {
		t.Fatal(err)
	}
	b := boardtest.New(t, board.Config{Secrets: r})
	for what, j := range map[string]board.Job{
		"name": {Name: "n-" + hostSecret}, "pool": {Pool: "p " + hostSecret}, "profile": {Profile: hostSecret},
		"title beside its name": {Title: "t " + jobSecret, Name: jobSecret, Env: map[string]string{"X_SECRET": jobSecret}},
	} {
		j.Prompt = "x"
		_, err := b.Submit(t.Context(), j)
		if err == nil || !strings.Contains(err.Error(), "holds a secret: ") || strings.Contains(err.Error(), hostSecret) || strings.Contains(err.Error(), jobSecret) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
