/**
 * The kind's work on the server, as PL/pgSQL. The same text runs in two ways: as `SECURITY DEFINER` functions that a
 * superuser has installed (`functions`), or as DO blocks with the rights of Mayfly's own login (`direct`).
 */

/** How a statement becomes another role, and what it may rely on. */
export type Way = 'functions' | 'direct'

/**
 * Name and type of each parameter, in order. `fixed`: the script stores these, so functions need not be passed them; a DO block is.
 * `direct`: those that only a DO block needs.
 */
export const PROCEDURES = {
  prepare: {
    given: { p_schema: 'text', p_creators: 'text[]', p_groups: 'text[]', p_comment: 'text' },
    fixed: {},
    direct: {},
  },
  issue: {
    given: { p_role: 'text', p_verifier: 'text', p_until: 'timestamptz', p_groups: 'text[]' },
    fixed: {},
    direct: { p_schema: 'text', p_creator: 'text' },
  },
  refresh: {
    given: { p_groups: 'text[]' },
    fixed: { p_schemas: 'text[]', p_reassign: 'text' },
    direct: {},
  },
  revoke: { given: { p_role: 'text' }, fixed: {}, direct: { p_schema: 'text' } },
  disown: { given: { p_role: 'text' }, fixed: { p_reassign: 'text' }, direct: {} },
  retire: { given: { p_prefix: 'text', p_schema: 'text', p_keep: 'text[]' }, fixed: {}, direct: {} },
} as const
export type ProcedureName = keyof typeof PROCEDURES

/** A role of a credential: `mf_` and the body of its id. No other role is ever ended. */
export const CREDENTIAL = '^mf_[0-9a-z]{26}$'

/** The roles of credentials after a name, as SQL that the setup script writes into a function. */
export const listOf = (after: string, limit: string) =>
  `(SELECT coalesce(json_agg(json_build_object('name', r.rolname, 'until', r.rolvaliduntil) ORDER BY r.rolname), '[]') FROM (
    SELECT r.rolname, r.rolvaliduntil FROM pg_roles r WHERE r.rolname ~ '${CREDENTIAL}' AND r.rolname > ${after} ORDER BY r.rolname LIMIT least(${limit}, 1000)) r)`

/** How long a change of a role waits, in ms, before it ends the sessions that hold the lock. */
const ROLE_LOCK = "PERFORM set_config('lock_timeout', '250ms', true);"
/** How long DROP OWNED and a grant wait for objects in use. */
const OBJECT_LOCK = "PERFORM set_config('lock_timeout', '500ms', true);"

/** Returns the JSON text `expression` to the caller; a DO block leaves it in a setting (see `invoke`). */
const reply = (way: Way, expression: string) =>
  way === 'functions'
    ? `RETURN ${expression};`
    : `PERFORM set_config('mayfly.reply', ${expression}, true); RETURN;`
const state = (way: Way, name: string) => reply(way, `'{"state":"${name}"}'`)

/**
 * Executes the statement as the role that may change `p_role`: as its creator, by the function that this one owns (see
 * `PREPARE`), else as the login itself. Only in the database where creators have their functions.
 */
const asAdmin = (way: Way, statement: string) =>
  way === 'functions'
    ? `EXECUTE ${statement};`
    : `IF admin IS NULL THEN EXECUTE ${statement}; ELSE EXECUTE format('SELECT %I.%I($1)', p_schema, admin) USING ${statement}; END IF;`

/**
 * From 16 on a role that is not a superuser may only use a role that it was granted with INHERIT and SET, even one that it
 * created (PostgreSQL 16, release notes, E.1.3.4).
 */
const joinStatement = (role: string) =>
  `format('GRANT %I TO %I%s', ${role}, session_user, CASE WHEN version >= 160000 THEN ' WITH INHERIT TRUE, SET TRUE' ELSE '' END)`
const join = (way: Way, role: string) =>
  way === 'functions'
    ? ''
    : `IF NOT pg_has_role(session_user, ${role}, 'USAGE') THEN
      ${asAdmin(way, joinStatement(role))}
    END IF;`

/** Counts in `seen` those of the sessions `suspects` that `terminate` ends. The server refuses to end those of others. */
const terminateEach = (terminate: string) => `FOREACH pid IN ARRAY suspects LOOP
        BEGIN
          ${terminate}
          IF ended THEN seen := seen + 1; END IF;
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
      END LOOP;`

/**
 * Terminates sessions as the role itself, so that those of others are refused and stay. `pg_terminate_backend` in a function:
 * through one that the role owns for that moment.
 */
const terminateSuspects = (way: Way) =>
  way === 'functions'
    ? `EXECUTE format('CREATE FUNCTION mayfly.%I(int) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS ''SELECT pg_catalog.pg_terminate_backend($1)''', p_role);
      EXECUTE format('ALTER FUNCTION mayfly.%I(int) OWNER TO %I', p_role, p_role);
      ${terminateEach("EXECUTE format('SELECT mayfly.%I($1)', p_role) USING pid INTO STRICT ended;")}
      EXECUTE format('DROP FUNCTION mayfly.%I(int)', p_role);`
    : `${join(way, 'p_role')}
      EXECUTE format('SET LOCAL ROLE %I', p_role);
      ${terminateEach('ended := pg_terminate_backend(pid);')}
      SET LOCAL ROLE NONE;`

/** Who may change the role: the creator that made it (see `PREPARE`), else the login itself. */
const findAdmin = (way: Way, oid: string) =>
  way === 'functions'
    ? ''
    : `SELECT r.rolname INTO admin FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
   WHERE m.roleid = ${oid} AND m.admin_option AND starts_with(r.rolname, 'mfc_');`

const find = (way: Way) => `SELECT r.oid, r.rolcanlogin INTO x FROM pg_roles r WHERE r.rolname = p_role;
  ${findAdmin(way, 'x.oid')}`

const DECLARED = `x record; admin text; version int := current_setting('server_version_num')::int;`

/** Only roles of credentials are ever ended: the last guard, on the server itself. */
const REQUIRE_CREDENTIAL = `IF p_role !~ '${CREDENTIAL}' THEN
    RAISE EXCEPTION 'not a role of a credential' USING ERRCODE = 'invalid_parameter_value';
  END IF;`

const VERIFIER = '^SCRAM-SHA-256[$][0-9]{1,7}:[A-Za-z0-9+/]+=*[$][A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=$'

/** The functions create no other role, give no other password, and no groups of another login. */
const CHECK_ISSUE = `IF p_role !~ '${CREDENTIAL}' OR p_verifier !~ '${VERIFIER}' OR p_until IS NULL THEN
    RAISE EXCEPTION 'not a role of a credential, or not a SCRAM verifier' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF EXISTS (SELECT FROM unnest(p_groups) g WHERE NOT EXISTS (SELECT FROM mayfly.groups x WHERE x.name = g AND x.login = session_user)) THEN
    RAISE EXCEPTION 'not a group of this login' USING ERRCODE = 'insufficient_privilege';
  END IF;`

/**
 * Creates the login role as a member of the groups. SET FALSE, where the server knows it (16): a member cannot become the
 * group, whose objects would outlive it.
 */
const issue = (way: Way) => `DECLARE
  version int := current_setting('server_version_num')::int; admin text; members text;
BEGIN
  ${way === 'functions' ? CHECK_ISSUE : 'admin := p_creator;'}
  ${asAdmin(way, "format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD %L VALID UNTIL %L', p_role, p_verifier, p_until)")}
  SELECT string_agg(quote_ident(g), ', ') INTO members FROM unnest(p_groups) g;
  IF members IS NOT NULL THEN
    ${asAdmin(way, "format('GRANT %s TO %I%s', members, p_role, CASE WHEN version >= 160000 THEN ' WITH INHERIT TRUE, SET FALSE, ADMIN FALSE' ELSE '' END)")}
  END IF;
  ${state(way, 'issued')}
END`

/**
 * One step towards the end of a role, to be repeated until the state is `gone`. `disabled`, `again`: at once; `sessions`:
 * some were told to end, so after a pause; `prepared`: after the transactions named were rolled back; `owned`: after
 * `disown` in the databases named.
 *
 * Sessions: a connection passes the check of LOGIN inside a transaction of its own, but shows its user only later, and its
 * client may stretch that (`post_auth_delay`). So the virtual transactions are read first, after NOLOGIN was committed:
 * one whose session shows no user may be the role's.
 */
const revoke = (way: Way) => `DECLARE
  ${DECLARED} pids int[]; suspects int[]; pid int; ended boolean; seen int := 0; owners text[]; found json; other record;
BEGIN
  ${REQUIRE_CREDENTIAL}
  PERFORM set_config('client_min_messages', 'error', true);
  ${find(way)}
  IF x.oid IS NULL THEN
    -- It waits for a transaction that creates the role, then fails if that was committed.
    BEGIN
      EXECUTE format('CREATE ROLE %I', p_role);
      RAISE EXCEPTION USING ERRCODE = 'MF001';
    EXCEPTION
      WHEN SQLSTATE 'MF001' THEN ${state(way, 'gone')}
      WHEN duplicate_object OR unique_violation THEN ${state(way, 'again')}
    END;
  END IF;

  IF x.rolcanlogin THEN
    -- The holder may lock the role's row, by ALTER ROLE in a transaction left open or prepared.
    BEGIN
      ${ROLE_LOCK}
      ${asAdmin(way, `format('ALTER ROLE %I NOLOGIN VALID UNTIL ''-infinity''', p_role)`)}
      ${state(way, 'disabled')}
    EXCEPTION WHEN lock_not_available THEN NULL;
    END;
  END IF;

  pids := ARRAY(SELECT l.pid FROM pg_locks l WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid());
  PERFORM pg_stat_clear_snapshot();
  suspects := ARRAY(SELECT a.pid FROM pg_stat_activity a WHERE a.usesysid = x.oid) || ARRAY(SELECT p FROM unnest(pids) p LEFT JOIN pg_stat_activity a ON a.pid = p
    WHERE a.usesysid IS NULL AND coalesce(a.backend_type, 'client backend') = 'client backend');
  IF suspects <> '{}' THEN
    ${terminateSuspects(way)}
    IF seen > 0 THEN ${state(way, 'sessions')} END IF;
  END IF;

  owners := ARRAY[p_role] || ARRAY(SELECT g.rolname::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
    WHERE m.member = x.oid AND version < 160000);
  SELECT json_agg(json_build_object('gid', p.gid, 'database', p.database, 'owner', p.owner)) INTO found
    FROM pg_prepared_xacts p WHERE p.owner = ANY (owners);
  IF found IS NOT NULL THEN
    FOR other IN SELECT DISTINCT p.owner FROM pg_prepared_xacts p WHERE p.owner = ANY (owners) LOOP
      -- Only the owner or a superuser may roll it back, and not in a transaction: our login becomes the owner for that.
      ${way === 'functions' ? `EXECUTE ${joinStatement('other.owner')};` : join(way, 'other.owner')}
    END LOOP;
    ${reply(way, `json_build_object('state', 'prepared', 'prepared', found)::text`)}
  END IF;
  -- It had locked its row, and is past that.
  IF x.rolcanlogin THEN ${state(way, 'again')} END IF;

  SELECT json_agg(DISTINCT coalesce(d.datname, current_database())) INTO found
    FROM pg_shdepend s LEFT JOIN pg_database d ON d.oid = s.dbid AND d.datallowconn
   WHERE s.refclassid = 1260 AND s.refobjid = x.oid;
  IF found IS NOT NULL THEN
    -- Its functions and views reach nothing from now on, even if others depend on them so that they have to stay.
    FOR other IN SELECT g.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = x.oid LOOP
      BEGIN
        ${asAdmin(way, `format('REVOKE %I FROM %I CASCADE', other.rolname, p_role)`)}
      EXCEPTION WHEN insufficient_privilege THEN NULL; -- granted by another role
      END;
    END LOOP;
    ${join(way, 'p_role')}
    ${reply(way, `json_build_object('state', 'owned', 'databases', found)::text`)}
  END IF;

  BEGIN
    ${ROLE_LOCK}
    ${asAdmin(way, `format('DROP ROLE %I', p_role)`)}
    ${state(way, 'gone')}
  EXCEPTION
    WHEN dependent_objects_still_exist THEN ${state(way, 'again')}
    WHEN lock_not_available THEN NULL;
  END;
  -- Another credential has granted it something in a transaction that it left open.
  FOR other IN SELECT DISTINCT a.pid, a.usesysid, a.usename::text AS role FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE l.locktype = 'object' AND l.classid = 1260 AND l.objid = x.oid AND a.usename ~ '${CREDENTIAL}' LOOP
    ${findAdmin(way, 'other.usesysid')}
    ${join(way, 'other.role')}
    PERFORM pg_terminate_backend(other.pid);
  END LOOP;
  ${state(way, 'sessions')}
END`

/** Kinds of `pg_identify_object` for which DROP and GRANT have another word. */
const DROP_WORD = `CASE WHEN o.type IN ('function', 'procedure', 'aggregate') THEN 'ROUTINE'
        WHEN o.type = 'statistics object' THEN 'STATISTICS' ELSE upper(o.type) END`
const GRANT_WORD = `CASE WHEN o.type IN ('function', 'procedure', 'aggregate') THEN 'ROUTINE'
        WHEN o.type IN ('view', 'materialized view', 'foreign table') THEN 'TABLE' ELSE upper(o.type) END`

/**
 * Drops or reassigns what the role owns in the connected database and what it was granted, a part at a time if it is much,
 * because each object takes a lock to the end of the transaction. `more`: to be repeated. `kept`: others depend on it, or it
 * is in use; its grants and memberships are gone, so that its functions and views reach nothing.
 */
const disown = (way: Way) => `DECLARE
  x record; o record; n int := 0; code text; message text;
BEGIN
  ${REQUIRE_CREDENTIAL}
  PERFORM set_config('client_min_messages', 'error', true);
  SELECT r.oid INTO x FROM pg_roles r WHERE r.rolname = p_role;
  IF x.oid IS NULL THEN ${state(way, 'done')} END IF;
  ${way === 'functions' ? `SELECT g.reassign_to INTO p_reassign FROM mayfly.groups g WHERE g.login = session_user LIMIT 1;` : ''}
  IF p_reassign IS NULL THEN
    SELECT count(lo_unlink(l.oid)) INTO n FROM (SELECT m.oid FROM pg_largeobject_metadata m WHERE m.lomowner = x.oid LIMIT 1000) l;
    IF n = 1000 THEN ${state(way, 'more')} END IF;
  END IF;
  ${OBJECT_LOCK}
  BEGIN
    n := 0;
    FOR o IN SELECT i.type, i.identity, i.schema LIKE 'pg_temp%' AS temporary
        FROM (SELECT s.classid, s.objid FROM pg_shdepend s WHERE s.refclassid = 1260 AND s.refobjid = x.oid AND s.deptype = 'o'
               AND s.dbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) ORDER BY s.objid DESC) s,
             pg_identify_object(s.classid, s.objid, 0) i
       WHERE has_schema_privilege(to_regnamespace(i.schema), 'USAGE') AND (p_reassign IS NULL OR i.schema LIKE 'pg_temp%')
         AND NOT EXISTS (SELECT FROM pg_depend d
             WHERE d.classid = s.classid AND d.objid = s.objid AND d.objsubid = 0 AND d.deptype IN ('i', 'e')) LIMIT 100 LOOP
      EXECUTE 'DROP ' || ${DROP_WORD} || ' IF EXISTS ' || o.identity || CASE WHEN o.temporary THEN ' CASCADE' ELSE ' RESTRICT' END;
      n := n + 1;
    END LOOP;
  EXCEPTION WHEN OTHERS THEN n := 0; -- perhaps together with the rest: DROP OWNED tells
  END;
  IF n = 100 THEN ${state(way, 'more')} END IF;
  BEGIN
    IF p_reassign IS NOT NULL THEN EXECUTE format('REASSIGN OWNED BY %I TO %I', p_role, p_reassign); END IF;
    EXECUTE format('DROP OWNED BY %I', p_role);
    ${state(way, 'done')}
  EXCEPTION WHEN dependent_objects_still_exist OR out_of_memory OR lock_not_available OR query_canceled OR insufficient_privilege THEN
    code := SQLSTATE; message := SQLERRM;
  END;
  FOR o IN SELECT i.type, i.identity FROM (SELECT DISTINCT s.classid, s.objid FROM pg_shdepend s
        WHERE s.refclassid = 1260 AND s.refobjid = x.oid AND s.deptype = 'a'
          AND s.dbid IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))) s,
      pg_identify_object(s.classid, s.objid, 0) i WHERE i.identity IS NOT NULL LOOP
    BEGIN
      EXECUTE 'REVOKE ALL ON ' || ${GRANT_WORD} || ' ' || o.identity || format(' FROM %I CASCADE', p_role);
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
  END LOOP;
  ${reply(way, `json_build_object('state', 'kept', 'code', code, 'message', message)::text`)}
END`

/** Only this takes the lock. A credential could hold it, too: after a second the refresh goes on without. */
const REFRESH_LOCK = `BEGIN
    PERFORM set_config('lock_timeout', '1s', true);
    PERFORM pg_advisory_xact_lock(1835101798, hashtext(p_group));
  EXCEPTION WHEN lock_not_available THEN NULL;
  END;`

/** The statement that an administrator must run so that our login can grant it on. */
const REMEDY = `format('in %1$I: GRANT CONNECT ON DATABASE %1$I TO %2$I WITH GRANT OPTION; GRANT USAGE ON SCHEMA %3$s TO %2$I WITH GRANT OPTION; '
    'GRANT %4$s ON ALL TABLES IN SCHEMA %3$s TO %2$I WITH GRANT OPTION; GRANT %5$s ON ALL SEQUENCES IN SCHEMA %3$s TO %2$I WITH GRANT OPTION',
    current_database(), session_user, (SELECT string_agg(quote_ident(s), ', ') FROM unnest(p_schemas) s),
    CASE WHEN writes THEN 'SELECT, INSERT, UPDATE, DELETE' ELSE 'SELECT' END,
    CASE WHEN writes THEN 'USAGE, SELECT, UPDATE' ELSE 'SELECT' END)`

/**
 * Grants those of the groups that exist what their access, the end of their names, means in the connected database, and revokes
 * it outside of the schemas. What it cannot cover it names (20 at most) and goes on; `closed`: it cannot open the database or a schema.
 * Passes over what credentials own: its owner could keep others from being granted anything.
 */
const refresh = (way: Way) => `DECLARE
  version int := current_setting('server_version_num')::int; admin text; p_group text; p_access text; g oid; o record;
  uncovered text[] := '{}'; absent text; closed boolean := false; writes boolean := false; lacking text[]; grantable text[];
  here oid := (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
BEGIN
  PERFORM set_config('client_min_messages', 'error', true);
  FOREACH p_group IN ARRAY p_groups LOOP
  ${
    way === 'functions'
      ? `SELECT x.schemas, x.reassign_to INTO p_schemas, p_reassign FROM mayfly.groups x
   WHERE x.name = p_group AND x.login = session_user AND x.database = current_database();
  IF NOT FOUND THEN RAISE EXCEPTION 'not a group of this database' USING ERRCODE = 'insufficient_privilege'; END IF;`
      : ''
  }
  SELECT r.oid INTO g FROM pg_roles r WHERE r.rolname = p_group;
  CONTINUE WHEN g IS NULL;
  p_access := substring(p_group FROM '[^_]+$');
  writes := writes OR p_access = 'write';
  ${REFRESH_LOCK}
  ${OBJECT_LOCK}
  -- Up to 15 a member may become the group (SET ROLE), and leave objects behind in its name.
  IF version < 160000 AND EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 1260 AND s.refobjid = g AND s.deptype = 'o' AND s.dbid = here) THEN
    BEGIN
      ${join(way, 'p_group')}
      IF p_reassign IS NOT NULL THEN EXECUTE format('REASSIGN OWNED BY %I TO %I', p_group, p_reassign); END IF;
      EXECUTE format('DROP OWNED BY %I', p_group);
    EXCEPTION WHEN OTHERS THEN uncovered := uncovered || format('objects that belong to the group itself (%s)', SQLERRM);
    END;
  END IF;
  IF NOT has_database_privilege(g, here, 'CONNECT') THEN
    BEGIN
      EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), p_group);
    EXCEPTION WHEN insufficient_privilege THEN NULL;
    END;
    IF NOT has_database_privilege(g, here, 'CONNECT') THEN
      uncovered := uncovered || format('CONNECT on database %I', current_database());
      closed := true;
    END IF;
  END IF;
  FOR o IN SELECT s.name, n.oid FROM unnest(p_schemas) s (name) LEFT JOIN pg_namespace n ON n.nspname = s.name LOOP
    IF o.oid IS NULL THEN
      uncovered := uncovered || format('schema %I, which does not exist', o.name);
      absent := o.name;
      CONTINUE;
    END IF;
    IF has_schema_privilege(g, o.oid, 'USAGE') THEN CONTINUE; END IF;
    BEGIN
      EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', o.name, p_group);
    EXCEPTION WHEN insufficient_privilege OR lock_not_available THEN NULL;
    END;
    IF NOT has_schema_privilege(g, o.oid, 'USAGE') THEN
      uncovered := uncovered || format('schema %I', o.name);
      closed := true;
    END IF;
  END LOOP;
  FOR o IN SELECT c.oid, n.nspname, c.relname, c.relkind, p.lacking FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_roles r ON r.oid = c.relowner,
      LATERAL (SELECT array_agg(w.privilege) AS lacking FROM (SELECT unnest(
          CASE WHEN p_access = 'write' AND c.relkind = 'S' THEN '{SELECT,USAGE,UPDATE}'::text[]
               WHEN p_access = 'write' THEN '{SELECT,INSERT,UPDATE,DELETE}'::text[] ELSE '{SELECT}'::text[] END) AS privilege) w
        WHERE NOT CASE WHEN c.relkind = 'S' THEN has_sequence_privilege(g, c.oid, w.privilege)
                       ELSE has_table_privilege(g, c.oid, w.privilege) END) p
     WHERE n.nspname = ANY (p_schemas) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND p.lacking IS NOT NULL
       AND r.rolname !~ '${CREDENTIAL}' ORDER BY n.nspname, c.relname LOOP
    grantable := ARRAY(SELECT w FROM unnest(o.lacking) w WHERE CASE WHEN o.relkind = 'S'
      THEN has_sequence_privilege(o.oid, w || ' WITH GRANT OPTION') ELSE has_table_privilege(o.oid, w || ' WITH GRANT OPTION') END);
    lacking := o.lacking;
    IF grantable <> '{}' THEN
      BEGIN
        EXECUTE format('GRANT %s ON %s %I.%I TO %I', array_to_string(grantable, ', '),
          CASE WHEN o.relkind = 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, o.nspname, o.relname, p_group);
        lacking := ARRAY(SELECT unnest(lacking) EXCEPT SELECT unnest(grantable));
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END IF;
    IF lacking <> '{}' THEN
      uncovered := uncovered || format('%s on %I.%I', array_to_string(lacking, ', '), o.nspname, o.relname);
    END IF;
  END LOOP;
  FOR o IN SELECT i.type, i.identity FROM pg_shdepend s LEFT JOIN pg_class c ON s.classid = 1259 AND c.oid = s.objid
      JOIN pg_namespace n ON n.oid = CASE s.classid WHEN 1259 THEN c.relnamespace WHEN 2615 THEN s.objid END,
      pg_identify_object(s.classid, s.objid, 0) i
     WHERE s.refclassid = 1260 AND s.refobjid = g AND s.deptype = 'a' AND s.dbid = here AND n.nspname <> ALL (p_schemas) LOOP
    BEGIN
      EXECUTE 'REVOKE ALL ON ' || ${GRANT_WORD} || ' ' || o.identity || format(' FROM %I', p_group);
    EXCEPTION WHEN OTHERS THEN uncovered := uncovered || format('the end of the grants on %s', o.identity);
    END;
  END LOOP;
  END LOOP;
  uncovered := ARRAY(SELECT DISTINCT unnest(uncovered));
  ${reply(
    way,
    `json_build_object('count', cardinality(uncovered), 'uncovered', uncovered[1:20],
    'absent', absent, 'closed', closed, 'remedy', ${way === 'functions' ? 'NULL' : REMEDY})::text`,
  )}
END`

/**
 * The group roles and, from PostgreSQL 16 on, the roles that create credentials. A login that is not a superuser gets ADMIN on
 * every role that it creates, and what it does next looks through all of them: 20 issues a second at 20,000. So credentials are
 * spread over creators. Becoming one by SET ROLE would look through all again (16 ms at 20,000), a function that it owns does not.
 */
const PREPARE = `DECLARE
  creator text; grp text;
BEGIN
  PERFORM set_config('client_min_messages', 'error', true);
  IF p_creators <> '{}' AND to_regnamespace(quote_ident(p_schema)) IS NULL THEN
    EXECUTE format('CREATE SCHEMA %I', p_schema);
    FOREACH creator IN ARRAY p_creators LOOP
      EXECUTE format('CREATE ROLE %I NOLOGIN CREATEROLE', creator);
      EXECUTE format('GRANT %I TO %I WITH INHERIT FALSE, SET TRUE', creator, session_user);
      EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', p_schema, creator);
      EXECUTE format('CREATE FUNCTION %I.%I(text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET createrole_self_grant = %L AS %L',
        p_schema, creator, '', 'BEGIN EXECUTE $1; END');
      EXECUTE format('ALTER FUNCTION %I.%I(text) OWNER TO %I', p_schema, creator, creator);
      EXECUTE format('SET LOCAL ROLE %I', creator);
      EXECUTE format('REVOKE ALL ON FUNCTION %I.%I(text) FROM PUBLIC', p_schema, creator);
      EXECUTE format('GRANT EXECUTE ON FUNCTION %I.%I(text) TO %I', p_schema, creator, session_user);
      SET LOCAL ROLE NONE;
      EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM %I', p_schema, creator);
      EXECUTE format('REVOKE %I FROM %I', creator, session_user);
    END LOOP;
  END IF;
  FOREACH grp IN ARRAY p_groups LOOP
    IF to_regrole(grp) IS NULL THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', grp);
      EXECUTE format('COMMENT ON ROLE %I IS %L', grp, p_comment);
      FOREACH creator IN ARRAY p_creators LOOP
        EXECUTE format('GRANT %I TO %I WITH ADMIN TRUE, INHERIT FALSE, SET FALSE', grp, creator);
      END LOOP;
    END IF;
  END LOOP;
  ${state('direct', 'done')}
END`

/**
 * Drops the roles of the prefix that are not kept and that no credential needs. Replies with the databases in which they still
 * hold grants: first these go, by another call there.
 */
const RETIRE = `DECLARE
  version int := current_setting('server_version_num')::int; admin text; o record; databases text[] := '{}';
BEGIN
  PERFORM set_config('client_min_messages', 'error', true);
  IF p_keep = '{}' AND to_regnamespace(quote_ident(p_schema)) IS NOT NULL THEN EXECUTE format('DROP SCHEMA %I CASCADE', p_schema); END IF;
  FOR o IN SELECT r.oid, r.rolname::text AS name FROM pg_roles r
      WHERE (starts_with(r.rolname, 'mfg_' || p_prefix) OR starts_with(r.rolname, 'mfc_' || p_prefix)) AND r.rolname <> ALL (p_keep)
        AND NOT EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles c ON c.oid = m.member WHERE m.roleid = r.oid AND c.rolname ~ '${CREDENTIAL}')
        AND NOT EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles c ON c.oid = m.roleid WHERE m.member = r.oid AND c.rolname ~ '${CREDENTIAL}') ORDER BY r.rolname DESC LOOP
    BEGIN
      ${join('direct', 'o.name')}
      EXECUTE format('DROP OWNED BY %I', o.name);
    EXCEPTION WHEN insufficient_privilege THEN CONTINUE; -- made by another login
    END;
    IF NOT EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 1260 AND s.refobjid = o.oid AND s.dbid <> 0) THEN
      EXECUTE format('DROP ROLE %I', o.name);
    ELSE
      databases := databases || ARRAY(SELECT d.datname::text FROM pg_database d
        WHERE d.oid IN (SELECT s.dbid FROM pg_shdepend s WHERE s.refclassid = 1260 AND s.refobjid = o.oid));
    END IF;
  END LOOP;
  ${reply('direct', 'to_json(ARRAY(SELECT DISTINCT unnest(databases)))::text')}
END`

const bodiesOf = (way: Way): Readonly<Record<ProcedureName, string>> => ({
  prepare: PREPARE,
  retire: RETIRE,
  issue: issue(way),
  refresh: refresh(way),
  revoke: revoke(way),
  disown: disown(way),
})
const BODIES = { functions: bodiesOf('functions'), direct: bodiesOf('direct') }

/** The PL/pgSQL block of a procedure. */
export function bodyOf(name: ProcedureName, way: Way): string {
  return BODIES[way][name]
}
