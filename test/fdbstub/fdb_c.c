/*
 * A library to link and run the tests of build tag fdb with, where FoundationDB's client is not installed. It is not FoundationDB:
 * a few keys in this process's memory, with the rules that the lock depends on. System keys need an option, which a repeated
 * transaction has to set again; a transaction that read what has changed since is refused; a commit may have happened although it
 * says that nobody knows. Whatever the lock does not use aborts.
 */
#include "foundationdb/fdb_c.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OK = 0,
	TIMED_OUT = 1031,
	NOT_COMMITTED = 1020,
	COMMIT_UNKNOWN = 1021,
	CANCELLED = 1025,
	LOCKED = 1038,
	KEY_OUTSIDE = 2004,
	INVALID_OPTION = 2007,
	API_VERSION = 2203,

	OPTION_ACCESS_SYSTEM_KEYS = 301,
	OPTION_TIMEOUT = 500,
	OPTION_LOCK_AWARE = 700,

	MAX_KEYS = 64,
	MAX_BYTES = 512,
};

struct bytes {
	int length; /* -1: none */
	uint8_t data[MAX_BYTES];
};

struct entry {
	struct bytes key, value;
	int64_t changed;
};

struct FDBStubFuture {
	fdb_error_t error;
	struct bytes value;
};

struct FDBStubDatabase {
	/* What the connection string asks for. */
	int unreachable, locked, unknown, conflict;
};

struct FDBStubTransaction {
	FDBDatabase *database;
	int system_keys, lock_aware, cancelled, timed, writes;
	fdb_error_t error;
	int64_t read_version;
	struct entry written[MAX_KEYS];
	int reads;
	struct bytes read[MAX_KEYS];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopping = PTHREAD_COND_INITIALIZER;
static int stopped;
static struct entry stored[MAX_KEYS];
static int count;
static int64_t version = 1;

static void fail(const char *what) {
	fprintf(stderr, "fdbstub: %s: this is no FoundationDB\n", what);
	abort();
}

static struct bytes copy(const uint8_t *data, int length) {
	struct bytes b = {.length = length};
	if (length > MAX_BYTES) fail("a key or value too long");
	if (length > 0) memcpy(b.data, data, length);
	return b;
}

static int same(const struct bytes *a, const struct bytes *b) {
	return a->length == b->length && memcmp(a->data, b->data, a->length) == 0;
}

static struct entry *find(struct entry *entries, int *number, const struct bytes *key, int make) {
	for (int i = 0; i < *number; i++)
		if (same(&entries[i].key, key)) return &entries[i];
	if (!make) return NULL;
	if (*number == MAX_KEYS) fail("too many keys");
	struct entry *made = &entries[(*number)++];
	made->key = *key;
	made->value.length = -1;
	return made;
}

static FDBFuture *ready(fdb_error_t error) {
	FDBFuture *f = calloc(1, sizeof *f);
	f->error = error;
	f->value.length = -1;
	return f;
}

static fdb_error_t trouble(FDBTransaction *tr, const uint8_t *key, int length) {
	if (tr->cancelled) return CANCELLED;
	if (tr->error) return tr->error;
	if (tr->database->unreachable) {
		if (!tr->timed) fail("a transaction without a time limit would hang");
		return TIMED_OUT;
	}
	if (tr->database->locked && !tr->lock_aware) return LOCKED;
	if (length > 0 && key[0] == 0xff && !tr->system_keys) return KEY_OUTSIDE;
	return OK;
}

/* The process. */

const char *fdb_get_error(fdb_error_t code) {
	switch (code) {
	case TIMED_OUT: return "Operation aborted because the transaction timed out";
	case NOT_COMMITTED: return "Transaction not committed due to conflict with another transaction";
	case COMMIT_UNKNOWN: return "Transaction may or may not have committed";
	case CANCELLED: return "Operation aborted because the transaction was cancelled";
	case LOCKED: return "Database is locked";
	case KEY_OUTSIDE: return "Key outside legal range";
	}
	return "another error";
}

int fdb_get_max_api_version(void) { return 730; }

fdb_error_t fdb_select_api_version_impl(int runtime_version, int header_version) {
	return runtime_version > header_version || header_version > 730 ? API_VERSION : OK;
}

fdb_error_t fdb_setup_network(void) { return OK; }

fdb_error_t fdb_run_network(void) {
	pthread_mutex_lock(&mutex);
	while (!stopped) pthread_cond_wait(&stopping, &mutex);
	pthread_mutex_unlock(&mutex);
	return OK;
}

fdb_error_t fdb_stop_network(void) {
	pthread_mutex_lock(&mutex);
	stopped = 1;
	pthread_cond_broadcast(&stopping);
	pthread_mutex_unlock(&mutex);
	return OK;
}

/* Futures, which are always ready. */

void fdb_future_cancel(FDBFuture *f) { (void)f; }
void fdb_future_release_memory(FDBFuture *f) { (void)f; }
void fdb_future_destroy(FDBFuture *f) { free(f); }
fdb_bool_t fdb_future_is_ready(FDBFuture *f) { return f != NULL; }
fdb_error_t fdb_future_get_error(FDBFuture *f) { return f->error; }

fdb_error_t fdb_future_set_callback(FDBFuture *f, FDBCallback callback, void *parameter) {
	callback(f, parameter);
	return OK;
}

fdb_error_t fdb_future_get_value(FDBFuture *f, fdb_bool_t *present, const uint8_t **value, int *length) {
	*present = f->value.length >= 0;
	*value = f->value.data;
	*length = *present ? f->value.length : 0;
	return f->error;
}

/* Databases. */

fdb_error_t fdb_create_database_from_connection_string(const char *connection_string, FDBDatabase **out) {
	FDBDatabase *d = calloc(1, sizeof *d);
	d->unreachable = strstr(connection_string, "unreachable") != NULL;
	d->locked = strstr(connection_string, "locked") != NULL;
	d->unknown = strstr(connection_string, "unknown") != NULL;
	d->conflict = strstr(connection_string, "conflict") != NULL;
	*out = d;
	return OK;
}

void fdb_database_destroy(FDBDatabase *d) { (void)d; /* the transactions have it until they are collected */ }

fdb_error_t fdb_database_create_transaction(FDBDatabase *d, FDBTransaction **out) {
	FDBTransaction *tr = calloc(1, sizeof *tr);
	tr->database = d;
	*out = tr;
	return OK;
}

/* Transactions. */

void fdb_transaction_destroy(FDBTransaction *tr) { free(tr); }

void fdb_transaction_cancel(FDBTransaction *tr) {
	pthread_mutex_lock(&mutex);
	tr->cancelled = 1;
	pthread_mutex_unlock(&mutex);
}

fdb_error_t fdb_transaction_set_option(FDBTransaction *tr, FDBTransactionOption option, const uint8_t *value, int length) {
	int64_t milliseconds = 0;
	switch (option) {
	case OPTION_ACCESS_SYSTEM_KEYS: tr->system_keys = 1; return OK;
	case OPTION_LOCK_AWARE: tr->lock_aware = 1; return OK;
	case OPTION_TIMEOUT:
		if (length != sizeof milliseconds) return INVALID_OPTION;
		memcpy(&milliseconds, value, sizeof milliseconds);
		tr->timed = milliseconds > 0;
		return OK;
	}
	return INVALID_OPTION;
}

FDBFuture *fdb_transaction_get(FDBTransaction *tr, const uint8_t *key, int length, fdb_bool_t snapshot) {
	pthread_mutex_lock(&mutex);
	FDBFuture *f = ready(trouble(tr, key, length));
	if (!f->error) {
		struct bytes name = copy(key, length);
		if (tr->read_version == 0) tr->read_version = version;
		if (!snapshot) {
			if (tr->reads == MAX_KEYS) fail("too many reads");
			tr->read[tr->reads++] = name;
		}
		struct entry *found = find(tr->written, &tr->writes, &name, 0);
		if (!found) found = find(stored, &count, &name, 0);
		if (found) f->value = found->value;
	}
	pthread_mutex_unlock(&mutex);
	return f;
}

static void put(FDBTransaction *tr, const uint8_t *key, int length, struct bytes value) {
	pthread_mutex_lock(&mutex);
	tr->error = trouble(tr, key, length);
	if (!tr->error) {
		struct bytes name = copy(key, length);
		find(tr->written, &tr->writes, &name, 1)->value = value;
	}
	pthread_mutex_unlock(&mutex);
}

void fdb_transaction_set(FDBTransaction *tr, const uint8_t *key, int key_length, const uint8_t *value, int value_length) {
	put(tr, key, key_length, copy(value, value_length));
}

void fdb_transaction_clear(FDBTransaction *tr, const uint8_t *key, int length) {
	put(tr, key, length, (struct bytes){.length = -1});
}

static fdb_error_t commit(FDBTransaction *tr) {
	fdb_error_t error = trouble(tr, NULL, 0);
	if (error || tr->writes == 0) return error;
	for (int i = 0; i < tr->reads; i++) {
		struct entry *found = find(stored, &count, &tr->read[i], 0);
		if (found && found->changed > tr->read_version) return NOT_COMMITTED;
	}
	if (tr->database->conflict) { /* once */
		tr->database->conflict = 0;
		return NOT_COMMITTED;
	}
	version++;
	for (int i = 0; i < tr->writes; i++) {
		struct entry *to = find(stored, &count, &tr->written[i].key, 1);
		to->value = tr->written[i].value;
		to->changed = version;
	}
	if (tr->database->unknown) { /* once, and it did commit */
		tr->database->unknown = 0;
		return COMMIT_UNKNOWN;
	}
	return OK;
}

FDBFuture *fdb_transaction_commit(FDBTransaction *tr) {
	pthread_mutex_lock(&mutex);
	FDBFuture *f = ready(commit(tr));
	pthread_mutex_unlock(&mutex);
	return f;
}

/* Keeps the limit of time, as API versions from 610 do, and no other option. */
static void start_again(FDBTransaction *tr) {
	FDBTransaction fresh = {.database = tr->database, .timed = tr->timed, .cancelled = tr->cancelled};
	*tr = fresh;
}

FDBFuture *fdb_transaction_on_error(FDBTransaction *tr, fdb_error_t error) {
	pthread_mutex_lock(&mutex);
	int again = (error == NOT_COMMITTED || error == COMMIT_UNKNOWN) && !tr->cancelled;
	start_again(tr);
	pthread_mutex_unlock(&mutex);
	return ready(again ? OK : error);
}

/* What the lock does not use. */

#define UNUSED(result, name, parameters) \
	result name parameters { fail(#name); abort(); }
#pragma GCC diagnostic ignored "-Wunused-parameter"

UNUSED(fdb_error_t, fdb_network_set_option, (FDBNetworkOption o, const uint8_t *v, int l))
UNUSED(fdb_error_t, fdb_future_get_int64, (FDBFuture *f, int64_t *out))
UNUSED(fdb_error_t, fdb_future_get_key, (FDBFuture *f, const uint8_t **key, int *length))
UNUSED(fdb_error_t, fdb_future_get_keyvalue_array, (FDBFuture *f, const FDBKeyValue **p, int *c, fdb_bool_t *more))
UNUSED(fdb_error_t, fdb_future_get_key_array, (FDBFuture *f, const FDBKey **keys, int *c))
UNUSED(fdb_error_t, fdb_future_get_string_array, (FDBFuture *f, const char ***strings, int *c))
UNUSED(fdb_error_t, fdb_create_database, (const char *cluster_file, FDBDatabase **out))
UNUSED(fdb_error_t, fdb_database_set_option, (FDBDatabase *d, FDBDatabaseOption o, const uint8_t *v, int l))
UNUSED(fdb_error_t, fdb_database_open_tenant, (FDBDatabase *d, const uint8_t *name, int l, FDBTenant **out))
UNUSED(FDBFuture *, fdb_database_reboot_worker, (FDBDatabase *d, const uint8_t *a, int l, fdb_bool_t c, int s))
UNUSED(FDBFuture *, fdb_database_get_client_status, (FDBDatabase *d))
UNUSED(fdb_error_t, fdb_tenant_create_transaction, (FDBTenant *t, FDBTransaction **out))
UNUSED(void, fdb_tenant_destroy, (FDBTenant *t))
UNUSED(void, fdb_transaction_reset, (FDBTransaction *tr))
UNUSED(void, fdb_transaction_set_read_version, (FDBTransaction *tr, int64_t v))
UNUSED(FDBFuture *, fdb_transaction_get_read_version, (FDBTransaction *tr))
UNUSED(FDBFuture *, fdb_transaction_get_key, (FDBTransaction *tr, const uint8_t *k, int l, fdb_bool_t e, int o, fdb_bool_t s))
UNUSED(FDBFuture *, fdb_transaction_get_range, (FDBTransaction *tr, const uint8_t *b, int bl, fdb_bool_t be, int bo,
	const uint8_t *e, int el, fdb_bool_t ee, int eo, int limit, int bytes, FDBStreamingMode m, int i, fdb_bool_t s, fdb_bool_t r))
UNUSED(FDBFuture *, fdb_transaction_get_addresses_for_key, (FDBTransaction *tr, const uint8_t *k, int l))
UNUSED(FDBFuture *, fdb_transaction_get_estimated_range_size_bytes, (FDBTransaction *tr, const uint8_t *b, int bl,
	const uint8_t *e, int el))
UNUSED(FDBFuture *, fdb_transaction_get_range_split_points, (FDBTransaction *tr, const uint8_t *b, int bl, const uint8_t *e,
	int el, int64_t chunk))
UNUSED(void, fdb_transaction_atomic_op, (FDBTransaction *tr, const uint8_t *k, int kl, const uint8_t *o, int ol, FDBMutationType t))
UNUSED(void, fdb_transaction_clear_range, (FDBTransaction *tr, const uint8_t *b, int bl, const uint8_t *e, int el))
UNUSED(FDBFuture *, fdb_transaction_watch, (FDBTransaction *tr, const uint8_t *k, int l))
UNUSED(fdb_error_t, fdb_transaction_get_committed_version, (FDBTransaction *tr, int64_t *out))
UNUSED(FDBFuture *, fdb_transaction_get_approximate_size, (FDBTransaction *tr))
UNUSED(FDBFuture *, fdb_transaction_get_versionstamp, (FDBTransaction *tr))
UNUSED(fdb_error_t, fdb_transaction_add_conflict_range, (FDBTransaction *tr, const uint8_t *b, int bl, const uint8_t *e, int el,
	FDBConflictRangeType t))
