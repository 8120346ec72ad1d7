package fdbsim_test

import (
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/test/fdbsim"
	"holdfast.dev/holdfast/test/fdbsim/state"
)

// setUp makes the state that a transcript was recorded in.
type setUp func(*lab)

// rule gives a set-up to transcripts: those whose file's name matches, or all with these words in their command line.
type rule struct {
	file  string
	words []string
	setUp setUp
}

// setUpOf finds the set-up of a transcript: that of the first rule that fits.
func setUpOf(tr *transcript) (setUp, bool) {
	for _, r := range rules {
		if r.file != "" && !regexp.MustCompile(`^(`+r.file+`)\.(txt|json)$`).MatchString(tr.file) {
			continue
		}
		if len(r.words) > 0 && !tr.has(r.words...) {
			continue
		}
		return r.setUp, true
	}
	return nil, false
}

func nothing(*lab) {}

var rules = []rule{
	{file: `help-.*|c0-.*|version-.*`, setUp: nothing},

	// start
	{file: `13-.*|c4-start-again|99-noagent-start-again`, setUp: running},
	{file: `23-start-while-paused`, setUp: paused},
	{file: `99-noagent-start|95-unreachable-start|96-start-blob-unreachable-region`, setUp: nothing},
	{file: `a2-start-w`, setUp: func(l *lab) { l.agent("run3", third, nil) }},
	{file: `a2-start-w-z`, setUp: func(l *lab) { l.agent("run3", third, nil) }},
	{file: `c3-start-w-z`, setUp: func(l *lab) { l.agent("run", source, nil) }},
	{file: `b5-backup-start-locked`, setUp: func(l *lab) {
		l.lock(destination)
		l.answering(destination)
	}},
	{words: []string{"fdbbackup", "start"}, setUp: func(l *lab) { l.answering(l.cluster()) }},

	// what changes a backup
	{file: `34-.*|35-.*|46-discontinue-unknown|90-abort-unknown|94-wait-unknown-tag`, setUp: nothing},
	{file: `36-modify-completed-tag|46-discontinue-completed|96-abort-empty-tag`, setUp: completed},
	{file: `90-abort-again|90-wait-aborted`, setUp: aborted},
	{file: `29-wait-tp-nonz|45-wait-t2-after-discontinue`, setUp: completed},
	{file: `32-.*|33-.*`, words: []string{"modify"}, setUp: func(l *lab) {
		l.backup("t1", state.RunningDifferentially)
		l.change(source, func(c *state.Cluster) { c.Backup("t1").UID = "12c0c95d84f8e298e11fe77b55d867cf" })
	}},
	{words: []string{"fdbbackup", "modify"}, setUp: running},
	{words: []string{"fdbbackup", "abort"}, setUp: running},
	{words: []string{"fdbbackup", "discontinue"}, setUp: running},
	{words: []string{"fdbbackup", "wait"}, setUp: running},
	{words: []string{"fdbbackup", "pause"}, setUp: nothing},
	{words: []string{"fdbbackup", "resume"}, setUp: nothing},
	{words: []string{"fdbbackup", "cleanup"}, setUp: func(l *lab) {
		for _, tag := range []string{"t1", "t2", "t3"} {
			l.backup(tag, state.RunningDifferentially)
		}
	}},

	// what tells of backups
	{words: []string{"fdbbackup", "tags"}, setUp: func(l *lab) {
		for tag := range strings.Lines(l.tr.stdout) {
			l.backup(strings.TrimSuffix(tag, "\n"), state.Completed)
		}
	}},
	{file: `95-.*`, words: []string{"fdbbackup", "status"}, setUp: nothing},
	{words: []string{"fdbbackup", "status", "--json"}, setUp: statusOf},
	{words: []string{"--json"}, file: `.*status.*`, setUp: statusOf},
	{words: []string{"fdbbackup", "status"}, setUp: statusTextOf},

	// containers
	{words: []string{"fdbbackup", "list"}, setUp: func(l *lab) {
		for url := range strings.FieldsSeq(l.tr.stdout) {
			path := strings.ReplaceAll(strings.TrimPrefix(url, "file://"), "$LAB", l.dir)
			require.NoError(l.t, os.MkdirAll(path, 0o755))
		}
	}},
	{file: `41-describe-nonexistent|c4-describe-nonexistent|41-describe-vt-missing-clusterfile|96-describe-blob-.*`, setUp: nothing},
	{file: `41-describe-baseurl|c4-describe-base`, setUp: func(l *lab) {
		require.NoError(l.t, os.MkdirAll(l.path("backups"), 0o755))
		require.NoError(l.t, os.MkdirAll(l.path("cmp"), 0o755))
	}},
	{file: `95-unreachable-describe-vt`, setUp: recordedContainer},
	{words: []string{"fdbbackup", "describe"}, setUp: describedContainer},
	{file: `42-query-.*`, setUp: nothing},
	{words: []string{"fdbbackup", "query"}, setUp: recordedContainer},
	{words: []string{"fdbbackup", "dump"}, setUp: recordedContainer},
	{file: `77-expire-missing-container|80-delete-(again|nonexistent|no-dest)`, setUp: nothing},
	{words: []string{"fdbbackup", "delete"}, setUp: recordedContainer},
	{file: `70-expire-(again-same|earlier-than-expired)`, setUp: func(l *lab) {
		recordedContainer(l)
		l.succeed("fdbbackup", "expire", "-C", "$LAB/run/fdb.cluster", "-d", l.tr.option("-d", ""),
			"--expire-before-timestamp", "2026/11/20.16:00:20+0000")
	}},
	{file: `77-expire-(ts-wrong-cluster|two-cutoffs)`, setUp: func(l *lab) {
		recordedContainer(l)
		l.succeed("fdbbackup", "expire", "-d", l.tr.option("-d", ""), "--expire-before-version", "300000000")
	}},
	{file: `78-stale-expire|79-stale-expire2|83-stale-expire-false-refusal`, setUp: func(l *lab) {
		recordedContainer(l)
		l.container().setProperty("log_begin_version", 91668674)
		l.container().setProperty("log_end_version", 278643909)
	}},
	{words: []string{"fdbbackup", "expire"}, setUp: recordedContainer},

	// restores
	{file: `95-restore-missing-dest-cluster|95-unreachable-restore-status|50-restore-no-.*`, setUp: nothing},
	{words: []string{"fdbrestore", "status"}, setUp: restoreOf},
	{words: []string{"fdbrestore", "wait"}, setUp: restoreOf},
	{words: []string{"fdbrestore", "abort"}, setUp: abortedRestoreOf},
	{words: []string{"fdbrestore", "start"}, setUp: restorable},

	// fdbcli
	{file: `95-unreachable-fdbcli.*`, setUp: nothing},
	{file: `b5-lock`, setUp: nothing},
	{words: []string{"fdbcli", "-C"}, setUp: consoleOf},
}

// running, completed and aborted make a backup on the command's tag.
func running(l *lab) { l.backup(l.tr.option("-t", "default"), state.RunningDifferentially) }

func completed(l *lab) { l.backup(l.tr.option("-t", "default"), state.Completed) }

func aborted(l *lab) { l.backup(l.tr.option("-t", "default"), state.Aborted) }

func paused(l *lab) {
	l.answering(l.cluster())
	l.change(l.cluster(), func(c *state.Cluster) { c.Paused = true })
}

func (l *lab) lock(cluster string) {
	require.NoError(l.t, l.sim.Lock(cluster, "895543db62e0857a339391d5161cfca0"))
}

func (l *lab) succeed(args ...string) {
	stdout, stderr, code := l.run(l.t.Context(), args...)
	require.Zero(l.t, code, "%q: %s%s", args, stdout, stderr)
}

var keyLine = regexp.MustCompile("`([^']+)'(?: is `([^']*)')?\n")

// consoleOf makes the keys, the lock or the agents' documents that a session of fdbcli found.
func consoleOf(l *lab) {
	recorded := l.tr.stdout
	switch {
	case strings.Contains(l.tr.stderr, "1038"):
		l.lock(l.cluster())
	case strings.HasPrefix(recorded, "(reduced") || strings.HasPrefix(recorded, "{"):
		layersOf(l)
	default:
		keys := map[string]string{}
		for _, found := range keyLine.FindAllStringSubmatch(recorded, -1) {
			keys[found[1]] = found[2]
		}
		// There is more than was asked for.
		for _, prefix := range []string{"app/", "app2/", "big/", "restored/app/", "r2/app/"} {
			if strings.Contains(recorded, "`"+prefix+"000001'") {
				keys[prefix+"000003"] = "more"
			}
		}
		require.NoError(l.t, l.sim.Set(l.cluster(), keys))
	}
}

// layersOf makes the backups that a status json tells of, and lets an agent write them down.
func layersOf(l *lab) {
	recorded := l.tr.stdout
	if strings.HasPrefix(recorded, "(reduced") {
		_, recorded, _ = strings.Cut(recorded, "\n")
	}
	document := l.object(recorded)
	layers, isMap := document["cluster.layers"].(map[string]any)
	if cluster, whole := document["cluster"].(map[string]any); whole {
		layers, isMap = cluster["layers"].(map[string]any)
		if lock, found := cluster["database_lock_state"].(map[string]any); found && lock["locked"] == true {
			require.NoError(l.t, l.sim.Lock(l.cluster(), "eb03223d2489037a25bfbfb18d116fd6"))
		}
	}
	require.True(l.t, isMap)
	backup, told := layers["backup"].(map[string]any)
	if !told {
		return // no agent ran
	}
	tags, isMap := backup["tags"].(map[string]any)
	require.True(l.t, isMap)
	l.tags("", tags)
	l.change(l.cluster(), func(c *state.Cluster) { c.Paused = backup["paused"] == true })
	folder := map[string]string{source: "run", destination: "run2", third: "run3"}[l.cluster()]
	l.agent(folder, l.cluster(), func(c *fdbsim.Control) {
		idle(c)
		c.LayerPeriod = time.Second
	})
	if l.tr.file == "c7-layers-after-empty-tag.txt" || l.tr.file == "c7-layers-after-empty-tag.json" {
		// From now on the agent cannot write: what it wrote stays.
		l.backup("", state.Running)
		time.Sleep(1200 * time.Millisecond)
	}
}

var stateOf = map[string]string{
	"has been submitted": state.Submitted, "has been started": state.Running, "is differential": state.RunningDifferentially,
	"has been completed": state.Completed, "has been aborted": state.Aborted,
}

// tags makes the backups of a part of status json. A dot in a tag has made a level.
func (l *lab) tags(prefix string, level map[string]any) {
	for name, value := range level {
		entry, isMap := value.(map[string]any)
		require.True(l.t, isMap)
		words, isBackup := entry["current_status"].(string)
		if !isBackup {
			l.tags(prefix+name+".", entry)
			continue
		}
		l.backup(prefix+name, stateOf[words])
		l.change(l.cluster(), func(c *state.Cluster) {
			b := c.Backup(prefix + name)
			url, _ := entry["current_container"].(string)
			b.URL = strings.ReplaceAll(url, "$LAB", l.dir)
			if _, restorable := entry["last_restorable_version"]; !restorable {
				b.FirstEnd = 0
			}
		})
	}
}
