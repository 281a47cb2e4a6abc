import { resolve } from 'node:path'
import { defineVerb } from '../cli/frame/verb.ts'
import { INSTALLATION, inWords, keyInWords, readInstallation, reportFaults } from './init/installation.ts'

export const verb = defineVerb({
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
