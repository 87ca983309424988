package main

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	testscript.Main(m, map[string]func(){"worker": main})
}

// TestScripts runs the program through its command line; what it does together with a server is tested beside the orchestrator.
//
//	code N COMMAND…  exits with N
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: code N COMMAND…")
				}
				got := 0
				if err := ts.Exec(args[1], args[2:]...); err != nil {
					var exit *exec.ExitError
					if !errors.As(err, &exit) {
						ts.Fatalf("%v", err)
					}
					got = exit.ExitCode()
				}
				if strconv.Itoa(got) != args[0] {
					ts.Fatalf("exit code %d, want %s", got, args[0])
				}
			},
		},
	})
}

// A worker is what runs a hundred times: it must stay small and start fast.
func TestServerIsNotLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "muster/cmd/worker").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 50 {
		t.Fatalf("go list names %d packages only", len(deps))
	}
	for _, d := range deps {
		if strings.Contains(d, "nats-server") || d == "muster/board/embedded" {
			t.Errorf("%s is linked", d)
		}
	}
}
