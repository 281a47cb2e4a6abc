import { ADMIN } from '../cli/admin/verbs.ts'
import { EXIT } from '../cli/frame/failure.ts'
import { defineVerb } from '../cli/frame/verb.ts'
import { openSocketClient } from '../cli/session/admin.ts'
import { noteFaults } from './config-file.ts'
import { INSTALLATION, readInstallation, reportFaults } from './init/installation.ts'

export const verb = defineVerb({
  description:
    'Makes the server on this machine read its configuration again: the certificate, policies, recipes, limits and the log level. It takes all of it or nothing: a fault, or a change that needs a restart, is printed, and nothing has changed. A server without a terminal does the same at SIGHUP.',
  examples: {
    'mayfly server reload': 'as root, the installed server',
    'mayfly server reload --data-dir ./mayfly-data': 'the server with this data directory',
  },
  options: { config: INSTALLATION.config },
  json: async () => (await import('../api/admin.ts')).Reloaded,
  ...ADMIN,
  run: async (context, { config }) => {
    let isDone = false
    await reportFaults(context, async () => {
      const { dataDir } = await readInstallation(context, { config, masterKeyFile: undefined })
      const reloaded = await (await openSocketClient(context, dataDir)).admin.reload()
      const { changed, skipped, faults } = reloaded
      noteFaults(context, faults)
      for (const { source, message } of skipped)
        context.out.note(`mayfly: warning: ${source}: ${message}; this recipe is left out`)
      isDone = faults.length === 0
      const what = changed.length === 0 ? 'Nothing has changed.' : `Changed: ${changed.join(', ')}.`
      await context.out.show(reloaded, () => (isDone ? `Reloaded. ${what}` : 'Nothing was reloaded.'))
    })
    return isDone ? EXIT.done : EXIT.failed
  },
})
