package backup_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
	fdbbackup "holdfast.dev/holdfast/workflows/fdb/backup"
	"holdfast.dev/holdfast/workflows/fdb/requests"
)

func agentsAre(change func(*contract.FDBAgentsView)) change {
	return func(s *fdbbackup.Situation) { change(&s.View.Agents) }
}

func silent(class contract.FDBClass) change {
	return func(s *fdbbackup.Situation) { s.Seen = contract.FDBInspection{Failure: trouble(class)} }
}

// cluttered: there are 64 backups that have ended.
func cluttered(s *fdbbackup.Situation) {
	for i := range 64 {
		s.View.Backups = append(s.View.Backups, contract.FDBBackup{
			Tag: "default", URL: strings.Replace(firstURL, "/lab-", fmt.Sprintf("/old%d-", i), 1), State: fdb.StateAborted,
		})
	}
}

func stalled(s *fdbbackup.Situation) { s.Memory.Stalled = true }

// problemWith is a problem that is found before the database is read.
func problemWith(reason string) change {
	return func(s *fdbbackup.Situation) {
		s.View.Problem = &contract.FDBCondition{Type: "MisconfiguredBackup", Reason: reason, Message: "there is none"}
	}
}

func failing(class contract.FDBClass) *fdbbackup.Attempt {
	return &fdbbackup.Attempt{Operation: contract.FDBStart, Failure: trouble(class)}
}

// judgements are the conditions that hold, as "Type/Reason", and a part of their messages.
var judgements = map[string]struct {
	of     []change
	failed *fdbbackup.Attempt
	want   []string
	says   string
}{
	"all is as the spec says":   {},
	"the Deployment is missing": {of: []change{agentsAre(func(a *contract.FDBAgentsView) { *a = contract.FDBAgentsView{} })}, want: []string{"IncorrectDeployment/Missing"}, says: "does not exist yet"},
	"it differs":                {of: []change{agentsAre(func(a *contract.FDBAgentsView) { a.Current = false })}, want: []string{"IncorrectDeployment/Differs"}, says: "differs"},
	"it is another's":           {of: []change{agentsAre(func(a *contract.FDBAgentsView) { a.Ours, a.RolledOut = false, false })}, want: []string{"IncorrectDeployment/NotOurs"}, says: "delete that Deployment"},
	"the template is bad":       {of: []change{agentsAre(func(a *contract.FDBAgentsView) { a.Invalid = "spec.podTemplateSpec: no" })}, want: []string{"IncorrectDeployment/TemplateInvalid"}, says: "spec.podTemplateSpec: no"},
	"the Deployment is refused": {of: []change{agentsAre(func(a *contract.FDBAgentsView) { a.Current, a.Refused = false, "no quota" })}, want: []string{"IncorrectDeployment/Refused"}, says: "no quota"},
	"agents come up":            {of: []change{agentsAre(func(a *contract.FDBAgentsView) { a.RolledOut, a.Ready = false, 1 })}, want: []string{"DeploymentRollingOut/AgentsNotReady"}, says: "1 of 3"},
	"differing agents come up":  {of: []change{agentsAre(func(a *contract.FDBAgentsView) { a.RolledOut, a.Current = false, false })}, want: []string{"IncorrectDeployment/Differs", "DeploymentRollingOut/AgentsNotReady"}},

	"a new one does not run":            {of: []change{isNew}, want: []string{"IncorrectBackupState/NotRunning"}, says: "not running"},
	"a new one waits for its slot":      {of: []change{isNew, slot(contract.FDBSlotRequested)}, want: []string{"IncorrectBackupState/WaitingForInitialSnapshotSlot"}, says: "fewer backups"},
	"a restart is due":                  {of: []change{moved}, want: []string{"IncorrectBackupState/Restarting"}, says: "destination, tag or key ranges"},
	"a restart waits for its slot":      {of: []change{moved, slot(contract.FDBSlotRequested)}, want: []string{"IncorrectBackupState/WaitingForInitialSnapshotSlot"}, says: "the old one runs until then"},
	"no agent has begun":                {of: []change{starting(fdb.StateSubmitted)}, want: []string{"IncorrectBackupState/WaitingForAgents"}, says: "waits for a backup agent"},
	"there is no agent":                 {of: []change{starting(fdb.StateSubmitted), agentsAre(func(a *contract.FDBAgentsView) { a.Wanted = 0 })}, want: []string{"IncorrectBackupState/WaitingForAgents"}, says: "spec.agentCount is 0"},
	"the first snapshot is written":     {of: []change{starting(fdb.StateRunning)}, want: []string{"IncorrectBackupState/InitialSnapshot"}, says: "7 bytes so far"},
	"its agents have errors":            {of: []change{starting(fdb.StateRunning), func(s *fdbbackup.Situation) { s.Seen.Tags[0].Errors = []string{"no disk"} }}, want: []string{"IncorrectBackupState/InitialSnapshot"}, says: "no disk"},
	"it stands still":                   {of: []change{starting(fdb.StateRunning), stalled}, want: []string{"IncorrectBackupState/InitialSnapshotStalled"}, says: "no progress"},
	"a pause is due":                    {of: []change{asks("Paused")}, want: []string{"IncorrectBackupState/NotPaused"}, says: "not paused yet"},
	"a pause applies":                   {of: []change{asks("Paused"), agentsPaused}},
	"a paused one need not be complete": {of: []change{asks("Paused"), agentsPaused, starting(fdb.StateSubmitted)}},
	"a pause shall end":                 {of: []change{agentsPaused}, want: []string{"IncorrectBackupState/NotResumed"}, says: "still paused"},
	"others want no pause":              {of: []change{asks("Paused"), opposed}, want: []string{"IncorrectBackupState/PauseDisagreement"}, says: "team/other"},
	"others want a pause":               {of: []change{opposed}, want: []string{"IncorrectBackupState/PauseDisagreement"}, says: "team/other"},
	"the tag is in use":                 {of: []change{foreign}, want: []string{"IncorrectBackupState/TagTaken"}, says: "fdbbackup abort -t default"},
	"the data of too many are there":    {of: []change{isNew, cluttered}, want: []string{"IncorrectBackupState/NotRunning", "MisconfiguredBackup/TooManyBackups"}, says: "fdbbackup delete"},
	"a stop is due":                     {of: []change{asks("Stopped")}, want: []string{"IncorrectBackupState/NotStopped"}, says: "will be stopped"},
	"it is stopped":                     {of: []change{asks("Stopped"), ended}},
	"it is stopped on a tag in use":     {of: []change{asks("Stopped"), foreign}},
	"a command fails":                   {of: []change{isNew}, failed: failing(contract.FDBClassDenied), want: []string{"IncorrectBackupState/ToolFailing"}, says: "fdbbackup start has failed"},
	"the last start is in the future":   {of: []change{isNew}, failed: failing(contract.FDBClassFuture), want: []string{"IncorrectBackupState/LastStartInFuture"}, says: "does not work"},
	"the database does not answer":      {of: []change{silent(contract.FDBClassTimeout)}, want: []string{"IncorrectBackupState/ClusterUnreachable"}, says: "does not work"},
	"its answer makes no sense":         {of: []change{silent(contract.FDBClassOther)}, want: []string{"IncorrectBackupState/StateUnknown"}, says: "cannot be read"},
	"the data are gone": {
		of: []change{func(s *fdbbackup.Situation) {
			s.Seen.Containers = []contract.FDBContainer{{URL: firstURL, Missing: true}}
		}},
		want: []string{"IncorrectBackupState/DataMissing"}, says: "Stopped and then to Running",
	},

	"old data cannot be expired":              {of: []change{policy, turned("Failed")}, want: []string{"IncorrectBackupState/ExpiryFailing"}, says: "what became of it"},
	"the spec does not ask for that any more": {of: []change{turned("Failed")}},
	"the last turn has failed":                {of: []change{policy, turned("Expired"), result("Failed")}, want: []string{"IncorrectBackupState/ExpiryFailing"}, says: "what the turn says"},
	"a later turn has not":                    {of: []change{policy, turned("Failed"), result("Unsafe")}},
	"a refusal is no fault":                   {of: []change{policy, turned("Unsafe")}},
	"something else is wrong, too":            {of: []change{policy, turned("Failed"), agentsPaused}, want: []string{"IncorrectBackupState/NotResumed"}, says: "still paused"},
	"old data and a missing Secret":           {of: []change{policy, turned("Failed"), problem}, want: []string{"IncorrectBackupState/ExpiryFailing", "MisconfiguredBackup/SecretMissing"}},

	"another period is asked for":       {of: []change{period}, want: []string{"MisconfiguredBackup/ParametersDiffer"}},
	"other parameters are asked for":    {of: []change{parameters}, want: []string{"MisconfiguredBackup/ParametersDiffer"}},
	"the Secret is missing":             {of: []change{problem}, want: []string{"MisconfiguredBackup/SecretMissing"}, says: "there is no Secret"},
	"a bad spec is shown before states": {of: []change{isNew, problem}, want: []string{"MisconfiguredBackup/SecretMissing"}},
	"the cluster is missing":            {of: []change{problemWith("ClusterMissing")}, want: []string{"MisconfiguredBackup/ClusterMissing"}},
	"the credentials are bad":           {of: []change{problemWith("CredentialsInvalid")}, want: []string{"MisconfiguredBackup/CredentialsInvalid"}},
	"a range of keys cannot be":         {of: []change{problemWith("KeyRangesInvalid")}, want: []string{"MisconfiguredBackup/KeyRangesInvalid"}},
	"the destination is bad":            {of: []change{isNew}, failed: failing(contract.FDBClassBadURL), want: []string{"IncorrectBackupState/ToolFailing", "MisconfiguredBackup/DestinationInvalid"}},
	"the cluster file is bad":           {of: []change{silent(contract.FDBClassClusterFile)}, want: []string{"IncorrectBackupState/StateUnknown", "MisconfiguredBackup/ClusterNotReady"}},
	"no worker has inspected":           {of: []change{silent(contract.FDBClassNoWorker)}, want: []string{"IncorrectBackupState/NoWorker"}},
	"no worker has run the command":     {failed: failing(contract.FDBClassNoWorker), want: []string{"IncorrectBackupState/NoWorker"}},
	"there are no tools":                {of: []change{silent(contract.FDBClassToolMissing)}, want: []string{"IncorrectBackupState/StateUnknown", "MisconfiguredBackup/ToolsMissing"}},
	"the place is used":                 {of: []change{stampless, ended}, want: []string{"IncorrectBackupState/NotRunning", "MisconfiguredBackup/ContainerUsed"}, says: "timestampFormat"},
	"the place turns out to be used":    {of: []change{isNew}, failed: failing(contract.FDBClassUsed), want: []string{"IncorrectBackupState/ToolFailing", "MisconfiguredBackup/ContainerUsed"}},
}

func TestWhatHoldsIsACondition(t *testing.T) {
	for title, test := range judgements {
		t.Run(title, func(t *testing.T) {
			var found []string
			var messages strings.Builder
			for _, condition := range fdbbackup.Judge(inOrder(test.of...), test.failed) {
				found = append(found, condition.Type+"/"+condition.Reason)
				messages.WriteString(condition.Message)
				assert.LessOrEqual(t, len(condition.Message), 1024)
			}
			assert.Equal(t, test.want, found)
			assert.Contains(t, messages.String(), test.says)
		})
	}
}

// Every reason that the type has is reached by one of the judgements.
func TestEveryReasonIsReached(t *testing.T) {
	reached := map[string]bool{}
	for _, test := range judgements {
		for _, words := range test.want {
			_, reason, _ := strings.Cut(words, "/")
			reached[reason] = true
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../../../k8s/api/fdb/v1alpha1/conditions.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var known []string
	ast.Inspect(file, func(node ast.Node) bool {
		if block, is := node.(*ast.GenDecl); is && strings.Contains(block.Doc.Text(), "Restore") {
			return false // those of another kind
		}
		if spec, is := node.(*ast.ValueSpec); is && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			literal := spec.Values[0].(*ast.BasicLit)
			known = append(known, constant.StringVal(constant.MakeFromLiteral(literal.Value, token.STRING, 0)))
		}
		return true
	})
	require.ElementsMatch(t, known, slices.Collect(maps.Keys(reached)))
}

func TestAnObjectGoesWhenItsBackupHasEnded(t *testing.T) {
	tests := map[string]struct {
		of        []change
		failed    *fdbbackup.Attempt
		since     int64 // how long it has been unreachable, in seconds
		due       bool
		abandoned string
	}{
		"at once if it never ran":                     {of: []change{isNew}, due: true},
		"when it is aborted":                          {of: []change{ended}, due: true},
		"not while it runs":                           {},
		"though another's backup runs":                {of: []change{foreign}, due: true},
		"not while the database is silent":            {of: []change{silent(contract.FDBClassTimeout)}, since: 599},
		"when it was silent for long":                 {of: []change{silent(contract.FDBClassTimeout)}, since: 600, due: true, abandoned: firstURL},
		"not because an abort fails, if it answers":   {failed: failing(contract.FDBClassTimeout), since: 600},
		"not because the tools are missing":           {of: []change{silent(contract.FDBClassToolMissing)}, since: 600},
		"not because no worker inspects":              {of: []change{silent(contract.FDBClassNoWorker)}, since: 600},
		"from a namespace that ends, if that fails":   {of: []change{ending}, failed: failing(contract.FDBClassOther), due: true, abandoned: "it does not work"},
		"when its cluster is gone":                    {of: []change{clusterGone}, due: true, abandoned: "FoundationDBCluster is gone"},
		"not while its cluster is not ready":          {of: []change{func(s *fdbbackup.Situation) { s.View.Owner = "" }}},
		"from a namespace that ends, if it is silent": {of: []change{silent(contract.FDBClassTimeout), ending}, due: true, abandoned: "fdbbackup abort -t default"},
		"from a namespace that ends, when it ended":   {of: []change{ended, ending}, due: true},
		"from a namespace that ends not before":       {of: []change{ending}},
		"and says if no data are known of":            {of: []change{isNew, planned("default", firstURL), clusterGone}, due: true, abandoned: "no data are known of"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			now := hour(12)
			s := inOrder(append(test.of, deleted)...)
			if test.since > 0 {
				s.Memory.UnreachableSince = now.Unix() - test.since
			}
			due, abandoned := fdbbackup.ReleaseDue(s, test.failed, now, 600*second)
			assert.Equal(t, test.due, due)
			assert.Equal(t, test.abandoned != "", abandoned != "", abandoned)
			assert.Contains(t, abandoned, test.abandoned)
			after := requests.UnreachableSince(s.Memory.UnreachableSince, s.View.Owner, s.Seen.Failure, now)
			silent := s.View.Owner == "" || (s.Seen.Failure != nil && s.Seen.Failure.Class == contract.FDBClassTimeout)
			assert.Equal(t, silent, after != 0)
			if silent && test.since > 0 {
				assert.Equal(t, s.Memory.UnreachableSince, after, "the clock starts once")
			}
		})
	}
}

func clusterGone(s *fdbbackup.Situation) { s.View.Owner, s.View.ClusterGone = "", true }

func ending(s *fdbbackup.Situation) { s.View.NamespaceEnding = true }
