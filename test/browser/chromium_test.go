package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const (
	// patience is how long a page may take on a loaded machine, from the click to the text.
	patience = 90 * time.Second
	// glance is how long the browser may take to answer what is on a page.
	glance = time.Minute
)

// findChromium returns the browser at CHROMIUM_PATH or on PATH; without one it skips the test.
func findChromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if given := os.Getenv("CHROMIUM_PATH"); given != "" {
		names = []string{given} // what was asked for is not replaced by another
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	reason := "no " + strings.Join(names, ", ") + " found: install Chromium, or set CHROMIUM_PATH to it"
	if os.Getenv("CHROMIUM_PATH") != "" {
		require.Fail(t, "CHROMIUM_PATH: "+reason)
	}
	t.Skip(reason)
	return ""
}

// page is a tab of a browser of its own, with a fresh profile.
type page struct {
	t   *testing.T
	ctx context.Context
}

// openBrowser starts a browser that reaches nothing but loopback. When the test fails, it leaves a picture of the page behind.
func openBrowser(t *testing.T, path string) *page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
		chromedp.WindowSize(1600, 1400),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stopAllocator)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(stop)
	p := &page{t: t, ctx: ctx}
	started := make(chan error, 1)
	go func() {
		_, err := chromedp.Run(ctx, chromedp.Navigate("about:blank")) // it starts the browser, which would end with a limit of its own
		started <- err
	}()
	select {
	case err := <-started:
		require.NoError(t, err, "start %s", path)
	case <-time.After(patience):
		require.Fail(t, "the browser has not started", "%s, within %s", path, patience)
	}
	t.Cleanup(p.keepPicture)
	return p
}

// keepPicture tells the path of a screenshot when the test has failed. It lies outside the test's own folder, which is removed.
func (p *page) keepPicture() {
	if !p.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, glance)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100)) // as PNG
	path := filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-browser-%d.png", os.Getpid()))
	if err == nil {
		err = os.WriteFile(path, picture, 0o600)
	}
	if err != nil {
		p.t.Logf("no screenshot: %v", err)
		return
	}
	p.t.Logf("screenshot: %s", path)
}

// picture keeps what the page shows, in so many pixels, in the folder HOLDFAST_PICTURES, if it is set: for the README.
func (p *page) picture(name string, width, height int64) {
	p.t.Helper()
	folder := os.Getenv("HOLDFAST_PICTURES")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, glance)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.EmulateViewport(width, height))
	require.NoError(p.t, err)
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644)) //nolint:gosec // for everybody
}

// visibleText collects what a reader sees, that of embedded documents included: Markdown is drawn in one.
const visibleText = `(() => {
	const text = (document) => [document?.body?.innerText ?? "",
		...[...document?.querySelectorAll("iframe") ?? []].map((frame) => text(frame.contentDocument))].join("\n");
	return text(document);
})()`

// open loads an address. It does not wait for what scripts add to the page: see awaitText.
func (p *page) open(address string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Navigate(address))
	require.NoError(p.t, err, address)
}

// follow clicks the link that bears the text, as soon as there is one.
func (p *page) follow(text string) {
	p.t.Helper()
	click := fmt.Sprintf(`(() => {
		const link = [...document.querySelectorAll("a")].find((link) => link.innerText.includes(%q));
		link?.click();
		return link !== undefined;
	})()`, text)
	p.poll(func() string {
		clicked, err := ask[bool](p, click)
		if err != nil || !clicked {
			return fmt.Sprintf("no link %q (%v)", text, err)
		}
		return ""
	})
}

// awaitText returns when the page shows every text.
func (p *page) awaitText(texts ...string) {
	p.t.Helper()
	p.poll(func() string {
		seen, err := ask[string](p, visibleText)
		for _, text := range texts {
			if err != nil || !strings.Contains(seen, text) {
				return fmt.Sprintf("no text %q (%v)", text, err)
			}
		}
		return ""
	})
}

// hasNot: the page as it is does not show the text.
func (p *page) hasNot(text string) {
	p.t.Helper()
	seen, err := ask[string](p, visibleText)
	require.NoError(p.t, err)
	require.NotContains(p.t, seen, text)
}

// poll asks until nothing is missing. Otherwise the test fails with the last answer and what the page shows.
func (p *page) poll(missing func() string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		answer := missing()
		if answer == "" {
			return
		}
		if time.Now().After(deadline) {
			seen, _ := ask[string](p, visibleText)
			require.Fail(p.t, answer, "the page shows:\n%s", seen)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ask evaluates JavaScript on the page.
func ask[T any](p *page, script string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, glance)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script))
}
