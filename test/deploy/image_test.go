package deploy_test

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// instruction is a line of the image file: its keyword, its --flags, its words.
type instruction struct {
	keyword string
	flags   []string
	words   []string
}

// stage is what a FROM begins.
type stage struct {
	base         string
	instructions []instruction
}

func (s stage) all(keyword string) []instruction {
	var found []instruction
	for _, i := range s.instructions {
		if i.keyword == keyword {
			found = append(found, i)
		}
	}
	return found
}

// last returns the instruction of that keyword that counts.
func (s stage) last(t *testing.T, keyword string) instruction {
	t.Helper()
	found := s.all(keyword)
	require.NotEmpty(t, found, keyword)
	return found[len(found)-1]
}

// imageStages parses the image file: the stage that builds and the one that is shipped unless another is asked for.
func imageStages(t *testing.T) (build, final stage) {
	t.Helper()
	stages := allStages(t)
	return stages[0], stages[len(stages)-1]
}

// allStages parses the image file: the stage that builds, the one for FoundationDB's tools, the one that is shipped.
func allStages(t *testing.T) []stage {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(readFile(t, "deploy", "image", "Dockerfile")))
	require.NoError(t, err)
	require.Empty(t, parsed.Warnings)
	var stages []stage
	for _, node := range parsed.AST.Children {
		i := instruction{keyword: strings.ToUpper(node.Value), flags: node.Flags}
		for word := node.Next; word != nil; word = word.Next {
			i.words = append(i.words, word.Value)
		}
		if i.keyword == "FROM" {
			stages = append(stages, stage{base: i.words[0]})
			continue
		}
		require.NotEmpty(t, stages, "%s before FROM", i.keyword)
		current := &stages[len(stages)-1]
		current.instructions = append(current.instructions, i)
	}
	require.Len(t, stages, 3)
	return stages
}

// shipped returns the absolute paths of the files of the final stage, with where the first stage has them.
func shipped(t *testing.T, final stage) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, i := range final.all("COPY") {
		require.Equal(t, []string{"--from=build"}, i.flags)
		sources, target := i.words[:len(i.words)-1], i.words[len(i.words)-1]
		for _, source := range sources {
			if strings.HasSuffix(target, "/") {
				files[path.Join(target, path.Base(source))] = source
			} else {
				files[target] = source
			}
		}
	}
	return files
}

func TestImageHoldsTwoProgramsCertificatesAndTheLicenseAndIsNotRoot(t *testing.T) {
	_, final := imageStages(t)
	assert.Equal(t, "scratch", final.base)
	files := shipped(t, final)
	assert.Len(t, files, 4)
	assert.Contains(t, files, "/licenses/LICENSE")
	assert.Contains(t, files, "/etc/ssl/certs/ca-certificates.crt", "where Go looks for certificates")
	assert.Equal(t, []string{"/holdfast"}, final.last(t, "ENTRYPOINT").words)
	assert.Contains(t, files, "/holdfast")
	user, _, _ := strings.Cut(final.last(t, "USER").words[0], ":")
	number, err := strconv.Atoi(user)
	require.NoError(t, err, "Kubernetes can tell a number only from root")
	assert.Positive(t, number)
	assert.Empty(t, final.all("RUN"), "there is no shell")
}

// FoundationDB's tools are linked to glibc; otherwise their image runs as the other does.
func TestTheImageForFoundationDBAddsACLibraryAlone(t *testing.T) {
	_, final := imageStages(t)
	tools := allStages(t)[1]
	assert.Equal(t, "gcr.io/distroless/cc-debian12", tools.base)
	want := shipped(t, final)
	delete(want, "/etc/ssl/certs/ca-certificates.crt") // of the base image
	assert.Equal(t, want, shipped(t, tools))
	for _, keyword := range []string{"USER", "EXPOSE", "ENTRYPOINT"} {
		assert.Equal(t, final.last(t, keyword), tools.last(t, keyword))
	}
	assert.Empty(t, tools.all("RUN"), "there is no shell")
}

func TestDeploymentsAndComposeRunWhatTheImageHolds(t *testing.T) {
	_, final := imageStages(t)
	files := shipped(t, final)
	base := render(t, inCheckout(t, "deploy", "base"))
	for _, name := range []string{workerName, watcherName} {
		assert.Contains(t, files, base.deployment(t, name).Spec.Template.Spec.Containers[0].Command[0])
	}
	for _, name := range []string{"worker", "watcher"} {
		assert.Contains(t, files, composeProject(t).Services[name].Entrypoint[0])
	}
}

// With GOTOOLCHAIN=local an older Go than go.mod wants would refuse to build.
func TestImageIsBuiltWithAGoThatGoModTakes(t *testing.T) {
	build, _ := imageStages(t)
	image := regexp.MustCompile(`golang:(\d+)\.(\d+)\.(\d+)-`).FindStringSubmatch(build.base)
	require.NotNil(t, image, "want a Go release in full in %s", build.base)
	wanted := regexp.MustCompile(`(?m)^go (\d+)\.(\d+)\.(\d+)$`).FindStringSubmatch(readFile(t, "go.mod"))
	require.NotNil(t, wanted)
	weight := func(version []string) (sum int) {
		for _, part := range version[1:] {
			number, err := strconv.Atoi(part)
			require.NoError(t, err)
			sum = sum*1000 + number
		}
		return sum
	}
	assert.GreaterOrEqual(t, weight(image), weight(wanted))
}

// Everything that a builder would be sent; local files of a checkout are not among it.
func TestBuildContextHoldsSourcesOnly(t *testing.T) {
	ignored := ignoredByContext(t)
	for _, secret := range []string{".git/config", ".env/kubeconfig", "bin/holdfast", "notes.txt", "kubeconfig", "docs/install.md", "test/env/env.go"} {
		assert.True(t, ignored(secret), secret)
	}
	for _, source := range []string{"go.mod", "go.sum", "worker/main.go", "k8s/api/oadp/v1alpha1/doc.go"} {
		assert.False(t, ignored(source), source)
	}
}

func ignoredByContext(t *testing.T) func(string) bool {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(readFile(t, ".dockerignore")))
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	return func(file string) bool {
		matched, err := matcher.MatchesOrParentMatches(file)
		require.NoError(t, err)
		return matched
	}
}
