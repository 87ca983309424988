package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"muster/board/policy"
	"muster/cmd/internal/config"
	"muster/tools/sandbox"
	"muster/tools/workspace"
)

// write makes a configuration file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestExampleIsRead(t *testing.T) {
	data, err := os.ReadFile("../../../examples/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", "/home/somebody")
	f, err := config.ReadFile(write(t, string(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Sandbox{
		Mode: "auto", Readable: []string{"/home/somebody/go/pkg/mod", "/opt/toolchains"},
		Sandbox: policy.Sandbox{
			Min: "landlock", Network: "proxy", Domains: []string{"proxy.golang.org", "*.pythonhosted.org"},
			Limits: policy.Limits{
				Processes: 1152, Memory: 4 << 30, CPUSecs: 14_400, File: 8 << 30, OpenFiles: 4096, Tmp: 1 << 30, Disk: 20 << 30, DiskFiles: 2_000_000,
			},
		},
	}
	if diff := cmp.Diff(want, f.Sandbox); diff != "" {
		t.Error(diff)
	}
	if !f.Read || !slices.Equal(f.Secrets.Env, []string{"DEPLOY_PHRASE"}) {
		t.Errorf("read %v, secrets %v", f.Read, f.Secrets)
	}
	if !slices.Equal(f.Walk.Prune, workspace.Pruned()) || !slices.Equal(f.Walk.AlsoPrune, []string{"coverage"}) {
		t.Errorf("walk %v", f.Walk)
	}
}

func TestPrunedFolders(t *testing.T) {
	all := append(workspace.Pruned(), "coverage")
	slices.Sort(all)
	for text, want := range map[string][]string{
		"":                               nil,
		"walk: {}":                       nil,
		"walk: {prune: []}":              {},
		"walk: {prune: [a, b]}":          {"a", "b"},
		"walk: {also_prune: [coverage]}": all,
		"walk: {prune: [b, a], also_prune: [c, a]}": {"a", "b", "c"},
	} {
		f, err := config.ReadFile(write(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Walk.Pruned(); !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for in, want := range map[string]string{
		"sandbox:\n  mod: auto\n":                            `config.yaml:2: unknown field "mod"; did you mean mode?`,
		"sandboks: {}\n":                                     `config.yaml:1: unknown field "sandboks"; did you mean sandbox?`,
		"sandbox:\n  limits:\n    memry: 1GiB\n":             `config.yaml:3: unknown field "memry"; did you mean memory?`,
		"sandbox:\n  mode: loose\n":                          `config.yaml:2: mode "loose": there are auto and required`,
		"sandbox:\n  allow_off: true\n  mode: off\n":         `config.yaml:3: mode off cannot stand here`,
		"sandbox:\n  min: off\n":                             `config.yaml:2: min: off is no rung`,
		"sandbox:\n\n  min: best\n":                          `config.yaml:3: min: unknown rung "best"`,
		"sandbox:\n  network: all\n":                         `config.yaml:2: network: "all": there are none, proxy, open`,
		"sandbox:\n  network: none\n  domains: [a.b]\n":      `config.yaml:3: domains: they go with network proxy`,
		"sandbox:\n  domains: [127.0.0.1]\n":                 `config.yaml:2: domains: domain "127.0.0.1": write a name`,
		"sandbox:\n  limits:\n    memory: much\n":            `config.yaml:3: "much" is no size`,
		"sandbox:\n  limits:\n    processes: -2\n":           `config.yaml:2: limits: processes -2`,
		"sandbox:\n  readable:\n    - /ok\n    - relative\n": `config.yaml:4: "relative": write an absolute path`,
		"sandbox:\n  readable: [/]\n":                        `config.yaml:2: / is everything`,
		"sandbox:\n  limits:\n    memory: 1KiB\n":            `config.yaml:2: limits: memory 1024: no command could start`,
		"sandbox:\n  limits:\n    open_files: 3\n":           `limits: open_files 3: no command could start`,
		"secrets:\n  env: [A B]\n":                           `config.yaml:2: "A B" is no name of a variable`,
		"walk:\n  also_prune:\n    - ok\n    - a/b\n":        `config.yaml:4: "a/b" is no name of a folder`,
		"walk:\n  prune: [..]\n":                             `config.yaml:2: ".." is no name of a folder`,
		"rules:\n  deny: [' ']\n":                            `config.yaml:1: rules:`,
		"- a\n":                                              `config.yaml:1: the top must be a mapping`,
		"sandbox: &a {mode: auto}\nsandbox: *a\n":            `config.yaml:2: field "sandbox" given twice`,
		strings.Repeat("# long\n", 50_000):                   `over 262144 bytes`,
	} {
		if _, err := config.ReadFile(write(t, in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v\nwant %s", in, err, want)
		}
	}
}

func TestFileWithoutAWordIsTheDefaults(t *testing.T) {
	for _, in := range []string{"", "\n", "# nothing\n\n  # yet\n"} {
		f, err := config.ReadFile(write(t, in))
		if err != nil || !f.Read || f.Sandbox.Mode != "" {
			t.Errorf("%q: %+v, %v", in, f, err)
		}
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := config.ReadFile(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("a named file that is missing: %v", err)
	}
}

// A file that others may have written would be their word, not the host's.
func TestForeignFileIsRefused(t *testing.T) {
	name := write(t, "sandbox: {mode: auto}\n")
	if err := os.Chmod(name, 0o646); err != nil {
		t.Fatal(err)
	}
	if _, err := config.ReadFile(name); err == nil || !strings.Contains(err.Error(), "can be written by everybody") {
		t.Errorf("writable by everybody: %v", err)
	}
	if err := os.Chmod(name, 0o664); err != nil { // a group of the user's own is usual
		t.Fatal(err)
	}
	if _, err := config.ReadFile(name); err != nil {
		t.Error(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.ReadFile(pipe); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("a pipe: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	if err := os.Chown(name, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := config.ReadFile(name); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("another user's: %v", err)
	}
}

// hostOf is what a command with these arguments makes of a file.
func hostOf(t *testing.T, mode, file, args string) (h config.Host, err error) {
	t.Helper()
	app := &cli.App{Name: "p", Flags: config.Flags(mode), Action: func(c *cli.Context) error {
		h, err = config.HostOf(c, mode)
		return nil
	}}
	all := append([]string{"p", "--config", write(t, file)}, strings.Fields(args)...)
	if err := app.RunContext(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return h, err
}

func TestFileAndFlagsBecomeOne(t *testing.T) {
	for _, c := range []struct {
		mode, file, args string
		want             config.Host
		wrong            string
	}{
		{mode: "auto", want: config.Host{Mode: "auto", Sandbox: policy.Sandbox{Min: "landlock", Network: "none"}}},
		{mode: "required", want: config.Host{Mode: "required", Sandbox: policy.Sandbox{Min: "full", Network: "none"}}},
		{mode: "required", args: "--sandbox auto", want: config.Host{Mode: "auto", Sandbox: policy.Sandbox{Min: "landlock", Network: "none"}}},
		{mode: "auto", args: "--sandbox required", want: config.Host{Mode: "required", Sandbox: policy.Sandbox{Min: "full", Network: "none"}}},
		{
			mode: "required", file: "sandbox: {mode: auto, min: seccomp}",
			want: config.Host{Mode: "auto", Sandbox: policy.Sandbox{Min: "seccomp", Network: "none"}},
		},
		{
			mode: "auto", file: "sandbox: {min: full-same-uid}", args: "--sandbox-min limits",
			want: config.Host{Mode: "auto", Sandbox: policy.Sandbox{Min: "limits", Network: "none"}},
		},
		{
			mode: "auto", file: "sandbox: {domains: [b.c]}", args: "--allow-domain a.b --allow-domain b.c",
			want: config.Host{Mode: "auto", Sandbox: policy.Sandbox{Min: "landlock", Network: "proxy", Domains: []string{"a.b", "b.c"}}},
		},
		{
			mode: "auto", file: "sandbox: {domains: [b.c]}", args: "--network none",
			want: config.Host{Mode: "auto", Sandbox: policy.Sandbox{Min: "landlock", Network: "none"}},
		},
		{
			mode: "auto", file: "sandbox: {network: open}",
			want: config.Host{Mode: "auto", Sandbox: policy.Sandbox{Min: "landlock", Network: "open"}},
		},
		{
			mode: "auto", file: "sandbox: {allow_off: true}", args: "--sandbox off",
			want: config.Host{Mode: "off", Sandbox: policy.Sandbox{Network: "none"}},
		},
		{mode: "auto", file: "sandbox: {allow_off: true}", want: config.Host{Mode: "auto", Sandbox: policy.Sandbox{Min: "landlock", Network: "none"}}},
		{mode: "auto", args: "--sandbox off", wrong: "needs both this flag and the line `sandbox: {allow_off: true}` in "},
		{mode: "auto", args: "--network open", wrong: "--network open: it needs the line `sandbox: {network: open}`"},
		{mode: "auto", file: "sandbox: {network: proxy}", wrong: "network proxy reaches nothing without a domain"},
		{mode: "auto", args: "--sandbox-min off", wrong: "off is no rung to ask for"},
		{mode: "auto", args: "--sandbox on", wrong: `--sandbox "on": there are auto, required and off`},
		{mode: "auto", file: "sandbox: {allow_off: true}", args: "--sandbox off --sandbox-min full", wrong: "go against each other"},
		{mode: "auto", args: "--network none --allow-domain a.b", wrong: "they go with network proxy"},
		{mode: "auto", args: "--allow-domain 1.2.3.4", wrong: "addresses are never allowed"},
	} {
		got, err := hostOf(t, c.mode, c.file, c.args)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s %q %q: %v, want %s", c.mode, c.file, c.args, err, c.wrong)
			}
		case err != nil:
			t.Errorf("%s %q %q: %v", c.mode, c.file, c.args, err)
		default:
			got.Sandbox.Limits = policy.Limits{} // their defaults are not the subject
			if got.Mode != c.want.Mode || !cmp.Equal(got.Sandbox, c.want.Sandbox) {
				t.Errorf("%s %q %q: mode %s, %s", c.mode, c.file, c.args, got.Mode, cmp.Diff(c.want.Sandbox, got.Sandbox))
			}
		}
	}
}

func TestLimitsHaveTheirDefaults(t *testing.T) {
	h, err := hostOf(t, "auto", "sandbox: {limits: {memory: 1GiB, disk: -1}}", "")
	if err != nil {
		t.Fatal(err)
	}
	d, l := sandbox.DefaultLimits(), h.Sandbox.Limits
	if l.Memory != 1<<30 || l.Disk != -1 || l.OpenFiles != d.OpenFiles || l.Processes != d.Processes || int64(l.Tmp) != d.TmpBytes {
		t.Errorf("limits %+v", l)
	}
}

func TestRungsAreThoseOfTheSandbox(t *testing.T) {
	if diff := cmp.Diff(append(sandbox.Rungs(), policy.Off), policy.Rungs()); diff != "" {
		t.Error(diff)
	}
}

func TestWarningIsOfOffAlone(t *testing.T) {
	var b strings.Builder
	config.Host{Mode: "auto"}.Warn(&b)
	config.Host{Mode: "required"}.Warn(&b)
	if b.Len() > 0 {
		t.Errorf("said %q", b.String())
	}
	config.Host{Mode: "off"}.Warn(&b)
	if got := b.String(); !strings.Contains(got, "WARNING: the sandbox is OFF") || strings.Contains(got, "\x1b") {
		t.Errorf("said %q", got)
	}
}

func TestCredentialsLeaveTheEnvironment(t *testing.T) {
	gone := map[string]string{
		"NATS_URL": "nats://127.0.0.1:4222", "NATS_USER": "somebody", "MUSTER_NATS_PASSWORD": "abcdefgh1234", "SOME_API_KEY": "abcdefgh1234",
		"GITHUB_TOKEN": "x", "a_secret": "abcdefgh1234", "ENCRYPTION_KEY": "abcdefgh1234", "DATABASE": "postgres://u:abcdefgh1234@h/db", "PHRASE": "open sesame now",
	}
	kept := map[string]string{"MUSTER_PREFIX": "mine", "KEYBOARD": "us", "TOKENS": "7", "SITE": "https://example.com/a"}
	for _, set := range []map[string]string{gone, kept} {
		for name, v := range set {
			t.Setenv(name, v)
		}
	}
	file := write(t, "file secret value\n")
	s := config.Secrets{Env: []string{"PHRASE", "NOT_SET"}, Files: []string{file}}
	values, err := s.Values()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"PHRASE": "open sesame now", "config.yaml": "file secret value"}, values); diff != "" {
		t.Error(diff)
	}
	if err := s.Unset(); err != nil {
		t.Fatal(err)
	}
	for name := range gone {
		if _, there := os.LookupEnv(name); there {
			t.Errorf("%s is still there", name)
		}
	}
	for name, v := range kept {
		if os.Getenv(name) != v {
			t.Errorf("%s is gone", name)
		}
	}
	if _, err := (config.Secrets{Files: []string{file + ".none"}}).Values(); err == nil {
		t.Error("a secret that is not there was passed over")
	}
}
