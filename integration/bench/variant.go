package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"idproxy/config"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// variant is one idproxy of those that are measured.
type variant struct {
	name     string
	program  string // empty: it is built of this module
	settings string // in front of idproxyConfig
	admin    string // address of its admin listener; empty: it has none
}

// engines are the two that idproxy has.
func engines() []variant {
	return []variant{
		{name: nameIDProxy, settings: "engine: " + config.EngineLoops},
		{name: nameThreads, settings: "engine: " + config.EngineGoroutines},
	}
}

// variants are both engines, and what the command line adds: one that is scraped, and another build.
func variants(scraped bool, beside string) (all []variant, err error) {
	all = engines()
	if scraped {
		admin, err := servers.FreeAddr()
		if err != nil {
			return nil, err
		}
		all = append(all, variant{name: nameScraped, settings: fmt.Sprintf("admin: {listen: %q}", admin), admin: admin})
	}
	if beside != "" {
		all = append(all, variant{name: nameBeside, program: beside})
	}
	return all, nil
}

// idproxyConfig has two rules; all else is as configured when nothing is said.
const idproxyConfig = `
listeners: [{name: bench, listen: "127.0.0.1:0", upstream: %[1]q}]
sources:   {ids: {segment: {}}}
rules:
  - {table: %[2]s.%[3]s, column: id, source: ids}
  - {table: %[2]s.%[4]s, column: id, source: ids}
`

func (v variant) start(ctx context.Context, dir, upstream string) (*target, error) {
	dir = filepath.Join(dir, v.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	program := v.program
	if program == "" {
		var err error
		if program, err = harness.BuildPlain(); err != nil {
			return nil, err
		}
	}
	text := v.settings + fmt.Sprintf(idproxyConfig, upstream, schema, ruledTable, ruledNothing)
	p, err := harness.Launch(ctx, program, harness.Spec{Config: text, Dir: dir})
	if err != nil {
		return nil, err
	}
	if v.admin != "" {
		go scrape(ctx, "http://"+v.admin+"/metrics")
	}
	return &target{name: v.name, addr: p.Addr("bench"), injects: true, proc: p.Process}, nil
}

// scrapePeriod is how often metrics are asked for: fifteen times as often as Prometheus does.
const scrapePeriod = time.Second

// scrape asks for metrics again and again until ctx is done.
func scrape(ctx context.Context, url string) {
	tick := time.NewTicker(scrapePeriod)
	defer tick.Stop()
	for {
		if err := get(ctx, url); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "bench: metrics:", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
