package redis

import "context"

// Ping asks whether the server answers.
func (s *Store) Ping(ctx context.Context) error { return s.client.Ping(ctx).Err() }
