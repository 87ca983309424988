package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// secretParts are the values that are planted, in two pieces each, so that the plan of the test holds none.
var secretParts = map[string][2]string{
	"PLANTED_API_KEY": {"Pq7xV-api-", "0123456789abcdef"},
	"PLANTED_NAMED":   {`Nq7"n\am<e&d `, "wörds 4711"},
	"planted.pem":     {"-----BEGIN TEST-----\n" + strings.Repeat("UExBTlRFRDEy", 5) + "\n", strings.Repeat("UExBTlRFRDM0", 5) + "\n-----END TEST-----"},
}

// leaked lists the planted values that bytes hold, in any usual form, or half of one.
func leaked(data []byte) (found []string) {
	for name, parts := range secretParts {
		v := parts[0] + parts[1]
		quoted, err := json.Marshal(v)
		if err != nil {
			return []string{err.Error()}
		}
		forms := []string{v, v[:len(v)/2+2], v[len(v)/2-2:], string(quoted[1 : len(quoted)-1]), hex.EncodeToString([]byte(v)), url.QueryEscape(v), base64.StdEncoding.EncodeToString([]byte(v)), strings.ReplaceAll(v, "\n", "\r\n")}
		for line := range strings.Lines(v) {
			if len(line) > 40 {
				forms = append(forms, strings.TrimSpace(line))
			}
		}
		for _, f := range forms {
			if bytes.Contains(data, []byte(f)) {
				found = append(found, name+": "+f)
			}
		}
	}
	return found
}

// secretPlan changes no file: a patch is kept as it is, as a repository would.
const secretPlan = `
jobs:
  - id: files
    title: reads files
    steps:
      - {tool: read_file, args: {path: a.txt}}
      - {tool: read_file, args: {path: AGENTS.md}}
      - {tool: grep, args: {pattern: "q7"}}
      - {tool: list_dir}
      - {tool: glob, args: {pattern: "**/*"}}
  - id: commands
    title: runs commands
    steps:
      - {tool: run_command, args: {command: "cat a.txt; cat a.txt >&2"}}
      - {tool: run_command, args: {command: "base64 a.txt; od -An -v -tx1 a.txt | tr -d ' \\n'; python3 -c 'import urllib.parse;print(urllib.parse.quote(open(\"a.txt\").read()))' || true"}}
      - {tool: run_command, args: {command: "head -c 30 a.txt; sleep 0.2; tail -c +31 a.txt"}}
      - {tool: run_command, args: {command: "seq 1 20000; cat a.txt; seq 1 20000"}}
  - id: fails
    title: fails with it
    after: []
    steps:
      - {tool: run_command, args: {command: "cat a.txt >&2; exit 3"}}
`

func TestNoPlantedSecretIsKeptOrShown(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	values := map[string]string{}
	var all []string
	for name, parts := range secretParts {
		values[name] = parts[0] + parts[1]
	}
	for _, name := range []string{"PLANTED_API_KEY", "PLANTED_NAMED", "planted.pem"} {
		all = append(all, values[name])
	}
	text := strings.Join(all, "\n") + "\n"
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "a.txt"), text)
	write(filepath.Join(dir, "AGENTS.md"), text)
	write(filepath.Join(dir, "b-"+values["PLANTED_API_KEY"]+".txt"), "by its name\n")
	write(filepath.Join(home, "plan.yaml"), secretPlan)
	write(filepath.Join(home, "planted.pem"), values["planted.pem"]+"\n")
	write(filepath.Join(home, "config", "muster", "config.yaml"), "sandbox: {mode: auto, min: limits}\nsecrets: {env: [PLANTED_NAMED], files: ["+filepath.Join(home, "planted.pem")+"]}\n")
	data := filepath.Join(home, "board")
	// secretive is a command that knows the secrets by its environment and configuration.
	secretive := func(args ...string) (stdout, stderr []byte) {
		t.Helper()
		c := program(t, append(args, "--data", data, "--dir", dir)...)
		c.Env = append(c.Env, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "PLANTED_API_KEY="+values["PLANTED_API_KEY"], "PLANTED_NAMED="+values["PLANTED_NAMED"])
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		var exit *exec.ExitError
		if err := c.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out.Bytes(), errs.Bytes()
	}
	look := func(what string, data []byte) {
		t.Helper()
		if found := leaked(data); len(found) > 0 {
			t.Errorf("%s shows %q: %.3000s", what, found, data)
		}
	}
	out, errs := secretive("run", "--plan", filepath.Join(home, "plan.yaml"), "--in-place", "--log-level", "debug", "--title", "t")
	look("run", append(out, errs...))
	if !bytes.Contains(out, []byte("[redacted PLANTED_API_KEY]")) || !bytes.Contains(out, []byte("[redacted PLANTED_NAMED]")) || !bytes.Contains(out, []byte("[redacted planted.pem]")) {
		t.Fatalf("nothing was planted: %s\n%s", out, errs)
	}
	out, errs = secretive("submit", "ask "+values["PLANTED_API_KEY"], "--model", "script:"+filepath.Join(home, "none"))
	look("submit", append(out, errs...))
	// Who reads the board later knows none of the secrets.
	var jobs []struct{ ID string }
	list, err := program(t, "list", "--json", "--data", data).Output()
	if err == nil {
		err = json.Unmarshal(list, &jobs)
	}
	if err != nil || len(jobs) != 3 {
		t.Fatalf("%d jobs, %v: %s", len(jobs), err, list)
	}
	look("list --json", list)
	commands := [][]string{{"list"}, {"workers", "--json"}}
	for _, j := range jobs {
		for _, verb := range []string{"show", "logs", "collect"} {
			commands = append(commands, []string{verb, j.ID}, []string{verb, j.ID, "--json"})
		}
	}
	redacted := 0
	for _, args := range commands {
		c := program(t, append(args, "--data", data)...)
		var both bytes.Buffer
		c.Stdout, c.Stderr = &both, &both
		_ = c.Run() // of the job that failed
		look(strings.Join(args, " "), both.Bytes())
		redacted += bytes.Count(both.Bytes(), []byte("[redacted "))
	}
	if redacted < 30 {
		t.Errorf("only %d secrets stood in what was shown", redacted)
	}
	lookAtFiles(t, data)
}

// lookAtFiles looks at every byte below a folder.
func lookAtFiles(t *testing.T, dir string) {
	t.Helper()
	bytesSeen := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		bytesSeen += len(data)
		if found := leaked(append(data, p...)); len(found) > 0 {
			return fmt.Errorf("%s holds %q", p, found)
		}
		return nil
	})
	if err != nil || bytesSeen < 10_000 {
		t.Errorf("%d bytes of the store: %v", bytesSeen, err)
	}
}

// A secret of a job's own, in its environment or its prompt, is in no place where people look. Its specification has it: the job must run.
func TestSecretsOfAJobAreNotShown(t *testing.T) {
	data := filepath.Join(t.TempDir(), "board")
	token := "ghp_" + strings.Repeat("aB3", 12)
	c := program(t, "submit", "use "+token+" and nats://u:"+"hunter22@host", "--title", "with "+token, "--model", "script:sha256:"+strings.Repeat("0", 64), "--data", data, "--dir", t.TempDir(), "--json")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var r struct{ Jobs []struct{ ID string } }
	if err := json.Unmarshal(out, &r); err != nil || len(r.Jobs) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	texts := map[string]string{"submit": string(out)}
	for _, args := range [][]string{{"list"}, {"show", r.Jobs[0].ID}, {"show", r.Jobs[0].ID, "--json"}, {"logs", r.Jobs[0].ID}, {"logs", r.Jobs[0].ID, "--json"}} {
		out, err := program(t, append(args, "--data", data)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		texts[strings.Join(args, " ")] = string(out)
	}
	for what, text := range texts {
		if strings.Contains(text, token) || strings.Contains(text, "hunter22") || !strings.Contains(text, "[redacted GitHub token]") {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// call prints the replies of tools itself: no board stands between.
func TestCallShowsNoSecret(t *testing.T) {
	dir := t.TempDir()
	value := secretParts["PLANTED_API_KEY"][0] + secretParts["PLANTED_API_KEY"][1]
	if err := os.WriteFile(filepath.Join(dir, "a-"+value), []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := program(t, "call", "--dir", dir)
	c.Env = append(c.Env, "PLANTED_API_KEY="+value)
	c.Stdin = strings.NewReader(`{"tool":"list_dir"}
{"tool":"read_file","args":{"path":"a-` + value + `"}}
{"tool":"grep","args":{"pattern":"q7"}}
{"tool":"run_command","args":{"command":"cat a-*; base64 a-*; cat a-* >&2; exit 3"}}
{"tool":"no-` + value + `"}
{"tool":"read_file","args":{"path":"none-` + value + `"}}
`)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if found := leaked(append(out, errs.Bytes()...)); len(found) > 0 {
		t.Errorf("shows %q: %s", found, out)
	}
	if n := bytes.Count(out, []byte("[redacted PLANTED_API_KEY]")); n < 8 || bytes.Count(out, []byte("\n")) != 6 {
		t.Errorf("%d secrets stood there: %s", n, out)
	}
}
