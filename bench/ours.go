package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"muster/budget"
	"muster/tools"
	"muster/tools/workspace"
)

// callCommand is what this program runs itself with for our side: one call of one tool, as a worker makes it, and nothing else.
const callCommand = "one-call"

// ours is a call of a tool on a folder. caps are as --caps takes them.
func (l *lab) ours(dir, tool, caps string, args any) (side, error) {
	text, err := json.Marshal(args)
	return side{argv: []string{l.self, callCommand, dir, tool, caps, string(text)}, count: ourTotal}, err
}

// callOnce makes the call and prints its text.
func callOnce(ctx context.Context, args []string) (err error) {
	if len(args) != 4 {
		return errors.New("one call takes a folder, a tool, caps and arguments")
	}
	choice, err := budget.ParseChoice(args[2])
	if err != nil {
		return err
	}
	caps, err := choice.Caps()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "muster-bench-call-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tree, err := workspace.OpenDir(args[0], filepath.Join(scratch, "scratch"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	set, err := tools.New(tools.Config{Tree: tree, Caps: caps, Mode: "goal"})
	if err != nil {
		return err
	}
	defer set.Close()
	r := set.Invoke(ctx, tools.Request{ID: "1", Tool: args[1], Args: json.RawMessage(args[3])})
	if !r.OK {
		return errors.New(r.Text)
	}
	_, err = fmt.Println(r.Text)
	return err
}
