/*
 * Declarations of FoundationDB's C API, written for compiling the Go bindings where FoundationDB's client is not installed: only
 * what the bindings refer to. It is not FoundationDB's header. A worker for use is built with the real header and library.
 */
#ifndef HOLDFAST_FDBSTUB_FDB_C_H
#define HOLDFAST_FDBSTUB_FDB_C_H

#include <stdint.h>

typedef struct FDBStubFuture FDBFuture;
typedef struct FDBStubDatabase FDBDatabase;
typedef struct FDBStubTenant FDBTenant;
typedef struct FDBStubTransaction FDBTransaction;

typedef int fdb_error_t;
typedef int fdb_bool_t;

typedef int FDBNetworkOption;
typedef int FDBDatabaseOption;
typedef int FDBTransactionOption;
typedef int FDBMutationType;
typedef int FDBStreamingMode;
typedef int FDBConflictRangeType;

#pragma pack(push, 4)
typedef struct {
	const uint8_t *key;
	int key_length;
} FDBKey;

typedef struct {
	const uint8_t *key;
	int key_length;
	const uint8_t *value;
	int value_length;
} FDBKeyValue;
#pragma pack(pop)

typedef void (*FDBCallback)(FDBFuture *future, void *parameter);

const char *fdb_get_error(fdb_error_t code);
int fdb_get_max_api_version(void);
fdb_error_t fdb_select_api_version_impl(int runtime_version, int header_version);

fdb_error_t fdb_network_set_option(FDBNetworkOption option, const uint8_t *value, int length);
fdb_error_t fdb_setup_network(void);
fdb_error_t fdb_run_network(void);
fdb_error_t fdb_stop_network(void);

void fdb_future_cancel(FDBFuture *f);
void fdb_future_release_memory(FDBFuture *f);
void fdb_future_destroy(FDBFuture *f);
fdb_bool_t fdb_future_is_ready(FDBFuture *f);
fdb_error_t fdb_future_set_callback(FDBFuture *f, FDBCallback callback, void *parameter);
fdb_error_t fdb_future_get_error(FDBFuture *f);
fdb_error_t fdb_future_get_int64(FDBFuture *f, int64_t *out);
fdb_error_t fdb_future_get_key(FDBFuture *f, const uint8_t **key, int *length);
fdb_error_t fdb_future_get_value(FDBFuture *f, fdb_bool_t *present, const uint8_t **value, int *length);
fdb_error_t fdb_future_get_keyvalue_array(FDBFuture *f, const FDBKeyValue **pairs, int *count, fdb_bool_t *more);
fdb_error_t fdb_future_get_key_array(FDBFuture *f, const FDBKey **keys, int *count);
fdb_error_t fdb_future_get_string_array(FDBFuture *f, const char ***strings, int *count);

fdb_error_t fdb_create_database(const char *cluster_file, FDBDatabase **out);
fdb_error_t fdb_create_database_from_connection_string(const char *connection_string, FDBDatabase **out);
void fdb_database_destroy(FDBDatabase *d);
fdb_error_t fdb_database_set_option(FDBDatabase *d, FDBDatabaseOption option, const uint8_t *value, int length);
fdb_error_t fdb_database_open_tenant(FDBDatabase *d, const uint8_t *name, int length, FDBTenant **out);
fdb_error_t fdb_database_create_transaction(FDBDatabase *d, FDBTransaction **out);
FDBFuture *fdb_database_reboot_worker(FDBDatabase *d, const uint8_t *address, int length, fdb_bool_t check, int suspend_seconds);
FDBFuture *fdb_database_get_client_status(FDBDatabase *d);

fdb_error_t fdb_tenant_create_transaction(FDBTenant *t, FDBTransaction **out);
void fdb_tenant_destroy(FDBTenant *t);

void fdb_transaction_destroy(FDBTransaction *tr);
void fdb_transaction_cancel(FDBTransaction *tr);
void fdb_transaction_reset(FDBTransaction *tr);
fdb_error_t fdb_transaction_set_option(FDBTransaction *tr, FDBTransactionOption option, const uint8_t *value, int length);
void fdb_transaction_set_read_version(FDBTransaction *tr, int64_t version);
FDBFuture *fdb_transaction_get_read_version(FDBTransaction *tr);
FDBFuture *fdb_transaction_get(FDBTransaction *tr, const uint8_t *key, int length, fdb_bool_t snapshot);
FDBFuture *fdb_transaction_get_key(FDBTransaction *tr, const uint8_t *key, int length, fdb_bool_t or_equal, int offset,
	fdb_bool_t snapshot);
FDBFuture *fdb_transaction_get_range(FDBTransaction *tr, const uint8_t *begin, int begin_length, fdb_bool_t begin_or_equal,
	int begin_offset, const uint8_t *end, int end_length, fdb_bool_t end_or_equal, int end_offset, int limit,
	int target_bytes, FDBStreamingMode mode, int iteration, fdb_bool_t snapshot, fdb_bool_t reverse);
FDBFuture *fdb_transaction_get_addresses_for_key(FDBTransaction *tr, const uint8_t *key, int length);
FDBFuture *fdb_transaction_get_estimated_range_size_bytes(FDBTransaction *tr, const uint8_t *begin, int begin_length,
	const uint8_t *end, int end_length);
FDBFuture *fdb_transaction_get_range_split_points(FDBTransaction *tr, const uint8_t *begin, int begin_length,
	const uint8_t *end, int end_length, int64_t chunk_size);
void fdb_transaction_set(FDBTransaction *tr, const uint8_t *key, int key_length, const uint8_t *value, int value_length);
void fdb_transaction_atomic_op(FDBTransaction *tr, const uint8_t *key, int key_length, const uint8_t *operand,
	int operand_length, FDBMutationType type);
void fdb_transaction_clear(FDBTransaction *tr, const uint8_t *key, int length);
void fdb_transaction_clear_range(FDBTransaction *tr, const uint8_t *begin, int begin_length, const uint8_t *end,
	int end_length);
FDBFuture *fdb_transaction_watch(FDBTransaction *tr, const uint8_t *key, int length);
FDBFuture *fdb_transaction_commit(FDBTransaction *tr);
fdb_error_t fdb_transaction_get_committed_version(FDBTransaction *tr, int64_t *out);
FDBFuture *fdb_transaction_get_approximate_size(FDBTransaction *tr);
FDBFuture *fdb_transaction_get_versionstamp(FDBTransaction *tr);
FDBFuture *fdb_transaction_on_error(FDBTransaction *tr, fdb_error_t error);
fdb_error_t fdb_transaction_add_conflict_range(FDBTransaction *tr, const uint8_t *begin, int begin_length,
	const uint8_t *end, int end_length, FDBConflictRangeType type);

#endif
