package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FoundationDBBackup backs a FoundationDB cluster of the same namespace up, continuously.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=foundationdbbackups,shortName=fdbb
// +kubebuilder:printcolumn:name="Generation",type="integer",JSONPath=".metadata.generation"
// +kubebuilder:printcolumn:name="Reconciled",type="boolean",JSONPath=".status.reconciled"
// +kubebuilder:printcolumn:name="Oldest-Data",type="string",JSONPath=".status.backups[0].oldestData.timestamp"
// +kubebuilder:printcolumn:name="Latest-Restorable",type="string",JSONPath=".status.backups[-1:].latestRestorable.timestamp"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.clusterName) ? self.spec.clusterName : self.metadata.name) == (has(oldSelf.spec) && has(oldSelf.spec.clusterName) ? oldSelf.spec.clusterName : self.metadata.name)",message="spec.clusterName cannot be changed: create another FoundationDBBackup for another cluster"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name may have 63 characters at most, because it is a label of the agents' pods"
type FoundationDBBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec FoundationDBBackupSpec `json:"spec"`
	// status is what was found.
	// +optional
	Status FoundationDBBackupStatus `json:"status,omitempty"`
}

// FoundationDBBackupSpec says what is backed up, where to, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.expiry) || !has(self.expiry.maxRetention) || duration(self.expiry.maxRetention).getSeconds() > self.snapshotPeriodSeconds + (has(self.expiry.minRestorable) ? duration(self.expiry.minRestorable).getSeconds() : 0)",message="expiry.maxRetention must be longer than snapshotPeriodSeconds plus expiry.minRestorable: otherwise nothing could ever expire"
type FoundationDBBackupSpec struct {
	// clusterName is the FoundationDBCluster in the same namespace; the backup's own name by default. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName,omitempty"`

	// backupState is what the backup shall do. Stopped aborts it; its data stay. Paused halts all agents of the cluster, which
	// happens only while every backup of the cluster that is not Stopped asks for it.
	// +optional
	// +kubebuilder:default=Running
	BackupState BackupState `json:"backupState,omitempty"`

	// backupType is the way in which FoundationDB is backed up.
	// +optional
	// +kubebuilder:default=backup_agent
	BackupType BackupType `json:"backupType,omitempty"`

	// destination is where the data go. A change starts a new backup beside the data of the old one.
	// +optional
	// +kubebuilder:default={}
	Destination BackupDestination `json:"destination,omitempty"`

	// credentials is the Secret with the accounts of the object store.
	// +required
	Credentials CredentialsReference `json:"credentials"`

	// tag is the name of the backup within the database, for those who keep several. A change starts a new backup.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="tag may hold only letters, digits, _ and -"
	Tag string `json:"tag,omitempty"`

	// keyRanges are what is backed up; everything by default. A change starts a new backup.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	KeyRanges []KeyRange `json:"keyRanges,omitempty"`

	// snapshotPeriodSeconds is how long FoundationDB takes for each snapshot after the first; 7 days by default. Whatever lies
	// between two snapshots can be restored from the older one and the logs.
	// +optional
	// +kubebuilder:default=604800
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	SnapshotPeriodSeconds int64 `json:"snapshotPeriodSeconds,omitempty"`

	// agentCount is the number of backup agents. Without any, a backup makes no progress.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	AgentCount *int32 `json:"agentCount,omitempty"`

	// podTemplateSpec is merged into the pods of the agents (a v1.PodTemplateSpec); containers by name: "foundationdb" runs
	// backup_agent, "foundationdb-kubernetes-init" brings the cluster file.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplateSpec *runtime.RawExtension `json:"podTemplateSpec,omitempty"`

	// urlParameters are further parameters of the backup's URL, name=value, for example secure_connection=0 or region=eu-west-1.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.matches('^[a-z0-9_]+=[A-Za-z0-9_.,:%/-]*$'))",message="each of urlParameters must be name=value without spaces, ?, & and ="
	// +kubebuilder:validation:XValidation:rule="self.all(p, !p.startsWith('bucket='))",message="the bucket is set by destination.bucket, not by urlParameters"
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.split('=')[0] == p.split('=')[0]))",message="urlParameters names a parameter twice"
	URLParameters []string `json:"urlParameters,omitempty"`

	// expiry says how long data are kept.
	// +optional
	// +kubebuilder:default={}
	Expiry BackupExpiry `json:"expiry,omitempty"`
}

// BackupState is what a backup shall do.
//
// +kubebuilder:validation:Enum=Running;Stopped;Paused
type BackupState string

// The states of a backup.
const (
	BackupStateRunning BackupState = "Running"
	BackupStateStopped BackupState = "Stopped"
	BackupStatePaused  BackupState = "Paused"
)

// BackupType is a way of backing FoundationDB up.
//
// +kubebuilder:validation:Enum=backup_agent
type BackupType string

// BackupTypeAgent is a backup by the processes named backup_agent.
const BackupTypeAgent BackupType = "backup_agent"

// BackupDestination is a place in an object store.
type BackupDestination struct {
	// account is name[@host[:port]], an account of the credentials file; the first one there by default. It holds no secret.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^:@/?#&%[:space:]]+(@[A-Za-z0-9.-]+(:[0-9]{1,5})?)?$')",message="account must be name, name@host or name@host:port; its secret belongs into the credentials file"
	Account string `json:"account,omitempty"`

	// endpoint is host[:port] of the object store; that of the account by default.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9.-]+(:[0-9]{1,5})?$')",message="endpoint must be host or host:port"
	Endpoint string `json:"endpoint,omitempty"`

	// bucket is made by FoundationDB if it is not there.
	// +optional
	// +kubebuilder:default=fdb-backups
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$')",message="bucket must have 3 to 63 lower-case letters, digits, dots and hyphens"
	Bucket string `json:"bucket,omitempty"`

	// path is the name of the backup in the bucket, to which the time of each start is added; the object's name by default.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$') && !self.matches('(^|/)[.]{1,2}(/|$)')",message="path may hold only letters, digits, _, -, . and /, must not begin or end with / and must not contain . or .. as a part"
	Path string `json:"path,omitempty"`

	// timestampFormat is how the time (UTC) of a start is added to path, as Go's time.Format reads it; -2006-01-02T15-04-05Z by
	// default. Empty adds nothing; a backup then cannot be started twice in the same place.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_./-]*$') && !self.contains('-07') && !self.contains('..')",message="timestampFormat may hold only letters, digits, _, ., / and -, and no numeric time zone (-07): FoundationDB takes no other characters in a name; times are UTC"
	TimestampFormat *string `json:"timestampFormat,omitempty"`
}

// CredentialsReference names a key of a Secret in the same namespace. Its value is a credentials file of FoundationDB:
// {"accounts":{"name@host":{"secret":"..."}}}.
type CredentialsReference struct {
	// secretName is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// key is the key within the Secret.
	// +optional
	// +kubebuilder:default=credentials
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// KeyRange is a range of keys, as FoundationDB prints them: printable characters, others as \xNN, a backslash as \\.
type KeyRange struct {
	// start is the first key of the range.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([!-\\\\[\\\\]-~]|\\\\\\\\x[0-9a-fA-F]{2}|\\\\\\\\\\\\\\\\)+$')",message="start must be a printable FoundationDB key: spaces and other bytes as \\xNN, a backslash twice"
	Start string `json:"start"`

	// end is the first key after the range.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([!-\\\\[\\\\]-~]|\\\\\\\\x[0-9a-fA-F]{2}|\\\\\\\\\\\\\\\\)+$')",message="end must be a printable FoundationDB key: spaces and other bytes as \\xNN, a backslash twice"
	End string `json:"end"`
}

// BackupExpiry says how long data are kept.
type BackupExpiry struct {
	// maxRetention is the age, as a Go duration ("720h"), at which data may be deleted; never by default.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0 && duration(self) > duration('0s')",message="maxRetention must be a duration in hours, minutes and seconds, for example 720h"
	MaxRetention string `json:"maxRetention,omitempty"`

	// minRestorable is the age, as a Go duration, up to which every moment stays restorable.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?$') && self.size() > 0",message="minRestorable must be a duration in hours, minutes and seconds, for example 168h"
	MinRestorable string `json:"minRestorable,omitempty"`

	// deletionFinalizer has the data deleted with the object. The backup itself ends in any case.
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
