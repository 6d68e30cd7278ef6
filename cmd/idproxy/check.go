package main

import "context"

func check(_ context.Context, _ []string, _ streams) error { return nil }

func explain(_ context.Context, _ []string, _ streams) error { return nil }
