package segment

import (
	"context"
	"errors"
	"fmt"

	"idproxy/idsource"
)

// reserve fetches one range. Close to the last id it takes what is left.
func reserve(ctx context.Context, store idsource.SegmentStore, a idsource.Ask) (lo, hi uint64, err error) {
	const tries = 3 // others reserve at the same time
	for range tries {
		lo, hi, err = store.Reserve(ctx, a)
		if full, ok := errors.AsType[*idsource.FullError](err); ok {
			next := max(full.Next, a.Floor)
			if next > a.Last {
				return 0, 0, err
			}
			a.Count = min(a.Count, a.Last-next+1)
			continue
		}
		if errors.Is(err, idsource.ErrNoKey) && a.High > 0 {
			return 0, 0, &idsource.WentBackError{}
		}
		if err == nil && (hi <= lo || hi-lo != a.Count || lo < a.Floor || hi-1 > a.Last) {
			err = fmt.Errorf("the store answered with the range [%d, %d) to a request for %d ids from %d on",
				lo, hi, a.Count, a.Floor)
		}
		return lo, hi, err
	}
	return 0, 0, err
}
