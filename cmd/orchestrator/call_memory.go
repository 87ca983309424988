package main

import (
	"context"
	"sync"

	"muster/board"
	"muster/board/memory"
	"muster/cmd/internal/app"
	"muster/tools"
	"muster/tools/skills"
)

// callBoard is the board of a session of call: opened by the first call that needs one, since most need none.
type callBoard struct {
	options boardOptions
	given   string // name of the project
	place   app.Project

	mu      sync.Mutex
	s       *session // nil: not open
	project string
}

// memory is where the session's memories are.
func (k *callBoard) memory() *tools.Memory {
	return &tools.Memory{Author: memory.Author{Title: "orchestrator call on " + k.place.Origin()}, Open: k.open}
}

func (k *callBoard) open(ctx context.Context) (*board.Board, string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.s == nil {
		project, err := k.place.Memories(ctx, k.given)
		if err != nil {
			return nil, "", err
		}
		s, err := k.options.open(ctx)
		if err != nil {
			return nil, "", err
		}
		k.s, k.project = s, project
	}
	return k.s.Board, k.project, nil
}

func (k *callBoard) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.s == nil {
		return nil
	}
	return k.s.Close()
}

// skillRow is what @skills prints of a skill.
type skillRow struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	File        string `json:"file"`
	Foreign     bool   `json:"foreign"` // it came with the files: its text is fenced
}

func skillRows(all []skills.Skill) []skillRow {
	rows := make([]skillRow, 0, len(all))
	for _, s := range all {
		rows = append(rows, skillRow{s.Name, s.Description, s.File, s.Foreign})
	}
	return rows
}
