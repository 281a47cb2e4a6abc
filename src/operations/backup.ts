import { resolve } from 'node:path'
import { defineVerb } from '../cli/frame/verb.ts'
import { INSTALLATION, inWords, keyInWords, readInstallation, reportFaults } from './init/installation.ts'

export const backup = defineVerb({
  description:
    'Copies the store of the server on this machine to a new file that only you can read, and checks the copy. The server may be running. The master key is not part of a backup: keep it in another place. A store in PostgreSQL is backed up with pg_dump.',
  arguments: [{ name: '<file>', description: 'the new file' }],
  admin: true,
  options: INSTALLATION,
  examples: {
    'mayfly backup /backup/mayfly-2026-11-22.db': 'of the server of /etc/mayfly/mayfly.yaml',
    'mayfly backup before.db --data-dir /var/lib/mayfly': 'name the data directory',
  },
  json: '{file, data_dir, agents: number, bytes: number, master_key: where it is}',
  run: (context, options, given) =>
    reportFaults(context, async () => {
      const file = resolve(context.cwd, given)
      const config = await readInstallation(context, options)
      const { backUp } = await import('../app/backup.ts')
      const done = await backUp(config, file, context.out.progress)
      const { agents, bytes } = done
      await context.out.report(
        { file, data_dir: config.dataDir, agents, bytes, master_key: keyInWords(config) },
        `Backed up ${config.dataDir} to ${file}: ${inWords(done)}.`,
      )
      context.out.note(
        `The master key is not part of it, and the backup is worthless without it. Keep ${keyInWords(config)} in another place.`,
      )
    }),
})

export const restore = defineVerb({
  description:
    'Puts a backup into an empty data directory, or into the empty PostgreSQL database of the configuration. Checks it first, and refuses a running server and a backup that was sealed with another master key. The master key is not part of a backup: put it in its place before.',
  arguments: [{ name: '<file>', description: 'a file of `mayfly backup`' }],
  admin: true,
  options: INSTALLATION,
  examples: {
    'mayfly restore /backup/mayfly-2026-11-22.db': 'into the data directory of /etc/mayfly/mayfly.yaml',
    'mayfly restore before.db --data-dir ./copy --master-key-file /etc/mayfly/master.key':
      'try a backup beside the running server',
  },
  json: '{file, data_dir, store: sqlite or postgresql, agents: number, bytes: number, master_key: where it is}',
  run: (context, options, given) =>
    reportFaults(context, async () => {
      const file = resolve(context.cwd, given)
      const config = await readInstallation(context, options)
      const { restore: putBack } = await import('../app/backup.ts')
      const done = await putBack(config, file, context.out.progress)
      const where = config.databaseUrl === undefined ? config.dataDir : 'the database of database_url'
      const { agents, bytes } = done
      const store = config.databaseUrl === undefined ? 'sqlite' : 'postgresql'
      await context.out.report(
        { file, data_dir: config.dataDir, store, agents, bytes, master_key: keyInWords(config) },
        `Restored ${file} into ${where}: ${inWords(done)}.`,
      )
      context.out.note(
        `The master key is not part of a backup: the server needs ${keyInWords(config)}, which fits this one.`,
      )
      context.out.note(
        'Credentials that were issued after the backup have no record here. Once the server runs, list their accounts with `mayfly backend reconcile NAME`, for each backend.',
      )
    }),
})
