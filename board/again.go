package board

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// Again submits jobs that have ended anew, as roots of their runs: with the same task, files and settings, all attempts, and as much time as they had.
// The old ones stay as they ended; the new ones name them. What came after one of them comes after its new form. A job that is done is done again
// only with force. All or none; the entries are in the order of ids.
func (b *Board) Again(ctx context.Context, force bool, ids ...string) ([]Entry, error) {
	var jobs []Job
	fresh := map[string]string{} // by old id
	for _, id := range ids {
		e, err := b.Get(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case !e.State.Terminal():
			return nil, fmt.Errorf("job %s is %s: %w", e.ID, e.State, ErrNotFinished)
		case e.State == Done && !force:
			return nil, fmt.Errorf("job %s is done: it is done again only with force", e.ID)
		case fresh[e.ID] != "":
			continue
		}
		j, _, err := b.spec(ctx, e)
		if err != nil {
			return nil, err
		}
		next, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make an id: %w", err)
		}
		fresh[e.ID] = next.String()
		if !j.Deadline.IsZero() {
			j.Deadline = now().Add(j.Deadline.Sub(j.Created))
		}
		j.ID, j.Again, j.Parent, j.Path, j.Created = next.String(), e.ID, "", nil, now()
		jobs = append(jobs, j)
	}
	for i := range jobs {
		j := &jobs[i]
		j.After = slices.Clone(j.After)
		for k, id := range j.After {
			if n := fresh[id]; n != "" {
				j.After[k] = n
				continue
			}
			before, err := b.Get(ctx, id)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return nil, err
			}
			if err == nil && before.State.Terminal() && before.State != Done && before.State != Partial {
				return nil, fmt.Errorf("job %s comes after %s, which is %s: name that one too", j.Again, id, before.State)
			}
		}
	}
	return b.Submit(ctx, jobs...)
}
