package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func init() {
	Configuration = append(Configuration, ResourceFoundationDBBackups)
	SchemeBuilder.Register(known(&FoundationDBBackup{}, &FoundationDBBackupList{}))
}

// FoundationDBBackup is a continuous backup of a FoundationDB cluster of the same namespace to an object store.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=foundationdbbackups,shortName=fdbb,categories=holdfast
// +kubebuilder:printcolumn:name="Generation",type="integer",JSONPath=".metadata.generation"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reconciled",type="boolean",JSONPath=".status.reconciled"
// +kubebuilder:printcolumn:name="Oldest-Data",type="string",JSONPath=".status.backups[0].oldestData.timestamp"
// +kubebuilder:printcolumn:name="Latest-Restorable",type="string",JSONPath=".status.backups[-1:].latestRestorable.timestamp"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:selectablefield:JSONPath=`.status.reconciled`
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.clusterName) ? self.spec.clusterName : self.metadata.name) == (has(oldSelf.spec) && has(oldSelf.spec.clusterName) ? oldSelf.spec.clusterName : self.metadata.name)",message="spec.clusterName cannot be changed: create another FoundationDBBackup for another cluster"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name may have 63 characters at most, because it is a label of the agents' pods"
type FoundationDBBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the backup.
	// +required
	Spec FoundationDBBackupSpec `json:"spec"`
	// status is the last observed state of the backup. Read-only.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status FoundationDBBackupStatus `json:"status,omitempty"`
}

// FoundationDBBackupSpec is the desired state of a FoundationDBBackup.
//
// +kubebuilder:validation:XValidation:rule="!has(self.expiry) || !has(self.expiry.maxRetention) || duration(self.expiry.maxRetention).getSeconds() > self.snapshotPeriodSeconds + (has(self.expiry.minRestorable) ? duration(self.expiry.minRestorable).getSeconds() : 0)",message="expiry.maxRetention must be longer than snapshotPeriodSeconds plus expiry.minRestorable: otherwise nothing could ever expire"
type FoundationDBBackupSpec struct {
	// clusterName is the name of the FoundationDBCluster to back up. It must be in the namespace of the FoundationDBBackup.
	// Defaults to the name of the FoundationDBBackup. At most 253 characters. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName,omitempty"`

	// backupState is the desired state of the backup: Running, Stopped or Paused. Defaults to Running.
	// Stopped aborts the backup and keeps its data. Paused suspends all backup agents of the FoundationDB cluster; it takes effect
	// only while every FoundationDBBackup of the cluster is either Paused or Stopped.
	// +optional
	// +kubebuilder:default=Running
	BackupState BackupState `json:"backupState,omitempty"`

	// backupType is the backup method. The only value, and the default, is backup_agent: processes of FoundationDB's program of
	// that name write snapshots and mutation logs.
	// +optional
	// +kubebuilder:default=backup_agent
	BackupType BackupType `json:"backupType,omitempty"`

	// destination is the location in the object store that the backup is written to. A change restarts the backup in a new place;
	// the old data are kept.
	// +optional
	// +kubebuilder:default={}
	Destination BackupDestination `json:"destination,omitempty"`

	// credentials references the Secret with the accounts of the object store.
	// +required
	Credentials CredentialsReference `json:"credentials"`

	// tag is the FoundationDB backup tag, which names the backup within the database. Backups of one cluster need different tags.
	// Letters, digits, _ and -; at most 64 characters. Defaults to "default". A change restarts the backup.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="tag may hold only letters, digits, _ and -"
	Tag string `json:"tag,omitempty"`

	// keyRanges are the ranges of keys to back up. Defaults to the whole key space. At most 100 ranges. A change restarts the
	// backup.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	KeyRanges []KeyRange `json:"keyRanges,omitempty"`

	// snapshotPeriodSeconds is the time, in seconds, over which FoundationDB spreads each snapshot after the first. A point
	// between two snapshots is restored from the older one and the mutation logs. Defaults to 604800 (7 days). Between 1 and
	// 315360000 (10 years).
	// +optional
	// +kubebuilder:default=604800
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	SnapshotPeriodSeconds int64 `json:"snapshotPeriodSeconds,omitempty"`

	// agentCount is the number of backup agents, the replicas of their Deployment. With 0 the backup makes no progress.
	// Defaults to 3. Between 0 and 1000.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	AgentCount *int32 `json:"agentCount,omitempty"`

	// podTemplateSpec is a v1.PodTemplateSpec that is merged into the pod template of the backup agents, containers by name:
	// "foundationdb" runs backup_agent, the init container "foundationdb-kubernetes-init" provides the cluster file.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplateSpec *runtime.RawExtension `json:"podTemplateSpec,omitempty"`

	// urlParameters are additional parameters of the backup URL, each as name=value, for example secure_connection=0 or
	// region=eu-west-1. At most 32 parameters of at most 256 characters each, no name twice.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.matches('^[a-z0-9_]+=[A-Za-z0-9_.,:%/-]*$'))",message="each of urlParameters must be name=value without spaces, ?, & and ="
	// +kubebuilder:validation:XValidation:rule="self.all(p, !p.startsWith('bucket='))",message="the bucket is set by destination.bucket, not by urlParameters"
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.split('=')[0] == p.split('=')[0]))",message="urlParameters names a parameter twice"
	URLParameters []string `json:"urlParameters,omitempty"`

	// expiry configures how long data are retained, and whether they are deleted with the FoundationDBBackup.
	// +optional
	// +kubebuilder:default={}
	Expiry BackupExpiry `json:"expiry,omitempty"`

	// objective is how recent the latest restorable point must be.
	// +optional
	Objective *BackupObjective `json:"objective,omitempty"`
}

// BackupObjective is how recent the latest restorable point of a backup must be.
type BackupObjective struct {
	// recoveryPoint is the age at which the latest restorable point is too old, as a duration in hours, minutes and seconds, for
	// example 30m. It is compared at each pass, see --fdb-status-interval, and when it is over. At least 1m, and at most 32
	// characters.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) >= duration('1m')",message="recoveryPoint must be a duration in hours, minutes and seconds, for example 30m, and at least 1m"
	RecoveryPoint string `json:"recoveryPoint"`
}

// BackupState is a desired state of a backup.
//
// +kubebuilder:validation:Enum=Running;Stopped;Paused
type BackupState string

// Desired states of a backup.
const (
	// BackupStateRunning starts the backup, or resumes it.
	BackupStateRunning BackupState = "Running"
	// BackupStateStopped aborts the backup and keeps its data.
	BackupStateStopped BackupState = "Stopped"
	// BackupStatePaused suspends the backup agents of the cluster.
	BackupStatePaused BackupState = "Paused"
)

// BackupType is a backup method. Its value is spelled as the FoundationDB operator spells it: the name of a program.
//
// +kubebuilder:validation:Enum=backup_agent
type BackupType string

// BackupTypeAgent is a backup by FoundationDB's program backup_agent.
const BackupTypeAgent BackupType = "backup_agent"

// BackupDestination is a location in an object store.
type BackupDestination struct {
	// account is an account of the credentials file, as name[@host[:port]] or, if its name is only in the file, as @host[:port];
	// without its secret. Defaults to the first account of the file. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^:@/?#&%[:space:]]+|[^:@/?#&%[:space:]]*@[A-Za-z0-9.-]+(:[0-9]{1,5})?)$')",message="account must be name, name@host, @host, or one of these with :port; its secret belongs in the credentials file"
	Account string `json:"account,omitempty"`

	// endpoint is the host[:port] of the object store. Defaults to the host of the account. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9.-]+(:[0-9]{1,5})?$')",message="endpoint must be host or host:port"
	Endpoint string `json:"endpoint,omitempty"`

	// bucket is the bucket of the object store. FoundationDB tries to create one that does not exist. Defaults to fdb-backups.
	// Lower-case letters, digits, dots and hyphens; at least 3 and at most 63 characters.
	// +optional
	// +kubebuilder:default=fdb-backups
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$')",message="bucket must have 3 to 63 lower-case letters, digits, dots and hyphens"
	Bucket string `json:"bucket,omitempty"`

	// path is the name of the backup in the bucket. The time of each start is appended, as timestampFormat says. Defaults to the
	// name of the FoundationDBBackup. Letters, digits, _, -, . and /; at most 512 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$') && !self.matches('(^|/)[.]{1,2}(/|$)')",message="path may hold only letters, digits, _, -, . and /, must not begin or end with / and must not contain . or .. as a part"
	Path string `json:"path,omitempty"`

	// timestampFormat is the layout, as for Go's time.Format, in which the time (UTC) of a start is appended to path. Defaults
	// to -2006-01-02T15-04-05Z. Empty appends nothing: such a backup cannot be started a second time in the same place. Letters,
	// digits, _, ., / and -; at most 64 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_./-]*$') && !self.contains('-07') && !self.contains('..')",message="timestampFormat may hold only letters, digits, _, ., / and -, and no numeric time zone (-07): FoundationDB accepts no other characters in a name; times are UTC"
	TimestampFormat *string `json:"timestampFormat,omitempty"`
}

// CredentialsReference references a key of a Secret in the same namespace. Its value is a credentials file of FoundationDB:
// {"accounts":{"name@host":{"secret":"..."}}}.
type CredentialsReference struct {
	// secretName is the name of the Secret. At most 253 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// key is the key within the data of the Secret. Defaults to credentials. At most 253 characters.
	// +optional
	// +kubebuilder:default=credentials
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// KeyRange is a range of keys, written as FoundationDB prints them: printable ASCII characters as they are, other bytes as \xNN,
// a backslash as \\.
type KeyRange struct {
	// start is the first key of the range, inclusive. At most 1024 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([!-\\\\[\\\\]-~]|\\\\\\\\x[0-9a-fA-F]{2}|\\\\\\\\\\\\\\\\)+$')",message="start must be a printable FoundationDB key: spaces and other bytes as \\xNN, a backslash twice"
	Start string `json:"start"`

	// end is the end of the range, exclusive. At most 1024 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([!-\\\\[\\\\]-~]|\\\\\\\\x[0-9a-fA-F]{2}|\\\\\\\\\\\\\\\\)+$')",message="end must be a printable FoundationDB key: spaces and other bytes as \\xNN, a backslash twice"
	End string `json:"end"`
}

// BackupExpiry configures how long the data of a backup are retained.
type BackupExpiry struct {
	// maxRetention is the age from which data are expired, as a duration in hours, minutes and seconds, for example 720h. It must be
	// longer than snapshotPeriodSeconds plus minRestorable. By default data never expire. At most 32 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) > duration('0s')",message="maxRetention must be a duration in hours, minutes and seconds, for example 720h"
	MaxRetention string `json:"maxRetention,omitempty"`

	// minRestorable is the age up to which every point in time stays restorable when data are expired, as a duration in hours,
	// minutes and seconds, for example 168h. By default none is guaranteed. At most 32 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0",message="minRestorable must be a duration in hours, minutes and seconds, for example 168h"
	MinRestorable string `json:"minRestorable,omitempty"`

	// deletionFinalizer deletes the data from the object store when the FoundationDBBackup is deleted. The backup is aborted in
	// either case. Defaults to true.
	// +optional
	// +kubebuilder:default=true
	DeletionFinalizer *bool `json:"deletionFinalizer,omitempty"`
}

// FoundationDBBackupList is a list of FoundationDBBackups.
//
// +kubebuilder:object:root=true
type FoundationDBBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FoundationDBBackup `json:"items"`
}
