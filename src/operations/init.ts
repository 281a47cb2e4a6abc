import { defineVerb } from '../cli/frame/verb.ts'
import { answer, INIT_OPTIONS } from './init/answers.ts'
import { reportFaults } from './init/installation.ts'
import { nextCommands, write } from './init/write.ts'

export const verb = defineVerb({
  description:
    'Sets up a server on this machine: asks for what a real installation needs, makes the master key, writes the configuration, and prints the next three commands. Overwrites nothing.',
  admin: true,
  options: INIT_OPTIONS,
  examples: {
    'mayfly init': 'as root: ask, and write /etc/mayfly/mayfly.yaml',
    'mayfly init --yes --issuer https://mayfly.example.com': 'in a script, behind a proxy',
    'mayfly init --yes --config ./server.yaml --data-dir ./data': 'a server of your own, without root',
  },
  json: '{wrote: [file], master_key_file, next: [command]}',
  run: (context, options) =>
    reportFaults(context, async () => {
      const answers = await answer(context, options)
      const written = await write(context, answers)
      const next = await nextCommands(answers, written)
      const key = answers.settings.master_key_file
      if (context.out.isJson) return context.out.json({ wrote: written.files, master_key_file: key, next })
      for (const file of written.files) context.out.note(`Wrote ${file}.`)
      context.out.note(`Keep a copy of ${key} apart from the backups: without it, they cannot be read.`)
      context.out.note('Next:')
      await context.out.result(next.join('\n'))
    }),
})
