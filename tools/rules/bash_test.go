package rules

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// stage is a folder whose programs are all that a shell finds: ok, bad, which leaves a mark, and some that run others.
type stage struct{ bin, work, mark string }

func newStage(t *testing.T) stage {
	t.Helper()
	dir := t.TempDir()
	s := stage{filepath.Join(dir, "bin"), filepath.Join(dir, "work"), filepath.Join(dir, "mark")}
	errs := []error{os.Mkdir(s.bin, 0o755), os.MkdirAll(filepath.Join(s.work, "out"), 0o755)}
	for name, text := range map[string]string{"ok": "exit 0", "bad": "echo x >>'" + s.mark + "'"} {
		errs = append(errs, os.WriteFile(filepath.Join(s.bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	for _, name := range []string{"bash", "sh", "env", "xargs", "timeout", "nice", "nohup", "find", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("this machine has no %s to try rules with", name)
		}
		errs = append(errs, os.Symlink(path, filepath.Join(s.bin, name)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return s
}

// runsBad runs a command with a real shell and says whether bad was run.
func (s stage) runsBad(ctx context.Context, shell, command string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, shell), "-c", command)
	cmd.Dir, cmd.Env = s.work, []string{"PATH=" + s.bin, "HOME=" + s.work}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var exit *exec.ExitError
	if out, err := cmd.CombinedOutput(); err != nil && !errors.As(err, &exit) {
		return false, fmt.Errorf("%w: %s", err, out)
	}
	_, err := os.Stat(s.mark)
	return err == nil, os.RemoveAll(s.mark)
}

// TestDressesRunWhatTheyWrap makes sure that the wrappings of the other tests are what a shell runs too.
func TestDressesRunWhatTheyWrap(t *testing.T) {
	s := newStage(t)
	ran := 0
	rapid.Check(t, func(t *rapid.T) {
		command := dress(t, "bad x")
		is, err := s.runsBad(t.Context(), "bash", command)
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		if is {
			ran++
		}
	})
	if ran < 50 {
		t.Errorf("bad was run by %d of the wrapped commands", ran)
	}
}

// scraps are commands, and pieces of commands, that are shuffled into others. None of them loops, and none writes elsewhere than to out.
var scraps = strings.Split("ok x~bad x~ok 'bad' \"bad\"~echo $(ok)~X='a[$(bad)]'; echo $X~X=bad; ok $X~cat <<E\n$X bad\nE~cat <<'E'\n$(bad)\nE~[ bad = x ]~[[ bad =~ (bad|x) ]] && ok~"+
	"bash -c 'ok $@' bad~sh -c 'ok \"$1\"' bad~echo bad | xargs ok~find . -name bad -o -exec ok bad \\;~env X=bad ok~trap 'ok bad' EXIT~ok # bad~case bad in bad) ok;; esac~"+
	"if ok; then ok bad; fi~{ ok; }; ( ok bad ) | cat~X=(bad y); echo ${X[0]}~read X <<< 'a[$(bad)]'; echo~for X in 'a[$(bad)]'; do echo $X; done~ok >out/x~"+
	"bad~ok~echo~$(~)~`~\"~'~\\~\\\n~\n~;~&&~||~|~(~)~{~}~$((~))~((~[[~]]~<<E~\nE\n~<<<~<(~$'~$\"~${X~${X:-~${X:~${!X}~${X@P}~a[~]~a[$(bad)]~$X~X=~X=bad~$((X))~((X))~[[ X -eq 1 ]]~-v~"+
	"eval~bash -c~sh -c~env~xargs~timeout 9~command~builtin~exec~trap~EXIT~if~then~fi~do~done~for~in~case~esac~;;~!~time~coproc~declare~export~local~-i~-n~let~read~printf -v~mapfile~unset~set~"+
	"--~-e~test~\t~#~*~?~~>out/o~</dev/null~2>&1~&>out/o~>&~=~+=~,~{bad,x}~$@~\"$@\"~$_~$1~@(~!(~|&~$[~{X}>out/o~set -k~hash -p~PATH=~IFS=~\\;~{}~-c~-S~X[$(bad)]=1", "~")

// TestWhatBashRunsWasAllowed shuffles commands, and lets a real shell run those that are allowed: the denied one is never among what runs.
func TestWhatBashRunsWasAllowed(t *testing.T) {
	s := newStage(t)
	set := parsed(t, Lists{Allow: []string{
		"run_command(ok *)", "run_command(echo *)", "run_command(cat *)", "run_command(find *)", "run_command([ *)", "run_command(test *)", "run_command(printf *)",
		"run_command(set *)", "run_command(read *)", "run_command(unset *)", "run_command(mapfile *)", "run_command(trap *)", "run_command(env *)", "run_command(command *)",
		"run_command(hash *)", "edit(out/**)",
	}})
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString(rapid.SampledFrom(scraps[:24]).Draw(t, "command"))
		command := b.String()
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(command)).Draw(t, "at")
			scrap := rapid.SampledFrom(scraps).Draw(t, "scrap")
			if rapid.Bool().Draw(t, "apart") {
				scrap = " " + scrap + " "
			}
			command = command[:at] + scrap + command[at:]
		}
		shell := rapid.SampledFrom([]string{"bash", "sh"}).Draw(t, "shell")
		d := set.Decide(Call{Tool: "run_command", Command: command, POSIX: shell == "sh"})
		if d.Verdict != Allow {
			return
		}
		tried++
		is, err := s.runsBad(t.Context(), shell, command)
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		if is {
			t.Fatalf("%s runs bad with %q, which is allowed by %v", shell, command, d)
		}
	})
	if tried == 0 {
		t.Error("no command was allowed, so that none was tried")
	}
}
