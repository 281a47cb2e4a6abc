import { defineVerb } from '../cli/frame/verb.ts'
import { answer, type InitOptions } from './init/answers.ts'
import { reportFaults, SYSTEM_CONFIG } from './init/installation.ts'
import { nextCommands, write } from './init/write.ts'

export const verb = defineVerb<InitOptions>({
  description:
    'Sets up a server on this machine: asks for what a real installation needs, makes the master key, writes the configuration, and prints the next three commands. Overwrites nothing.',
  admin: true,
  options: [
    {
      flags: '--config <file>',
      description: `file to write [default: ${SYSTEM_CONFIG}; env: MAYFLY_CONFIG]`,
    },
    { flags: '--issuer <url>', description: 'public address of the server [default: this machine only]' },
    { flags: '--listen <host:port>', description: 'address to listen on [default: follows from the others]' },
    { flags: '--tls-cert-file <path>', description: 'certificate, PEM, for TLS by Mayfly itself' },
    { flags: '--tls-key-file <path>', description: 'its private key, PEM' },
    {
      flags: '--trusted-proxy <cidr>',
      description: 'a proxy in front of the server, which does TLS; may be repeated [default: 127.0.0.1/32]',
      repeatable: true,
    },
    {
      flags: '--database-url-file <path>',
      description: 'file with a PostgreSQL URL, for a store in PostgreSQL [default: SQLite]',
    },
    {
      flags: '--master-key-file <path>',
      description:
        'file of the master key; made if it does not exist [default: master.key beside the configuration]',
    },
    { flags: '--admin <name>', description: 'name of the first administrator [default: operator]' },
    { flags: '--yes', description: 'ask nothing: take the default of every option that is left out' },
  ],
  examples: [
    { command: 'mayfly init', about: 'as root: ask, and write /etc/mayfly/mayfly.yaml' },
    {
      command: 'mayfly init --yes --issuer https://mayfly.example.com',
      about: 'in a script, behind a proxy',
    },
    {
      command: 'mayfly init --yes --config ./server.yaml --data-dir ./data',
      about: 'a server of your own, without root',
    },
  ],
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
