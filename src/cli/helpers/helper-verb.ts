import { type Failure, failureOf } from '../frame/failure.ts'
import { flag, type Options, type ValuesOf } from '../frame/options.ts'
import { type AnyVerb, type Context, defineVerb } from '../frame/verb.ts'
import { callOf } from '../git/wrapper.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { heldAnswer } from '../tools/held.ts'
import { REQUEST_OPTIONS, type RequestOptions, requestFlags, requestOf } from '../tools/request.ts'

/** What a program that runs a helper reads from it, and how it is told to run one. */
export interface Format<Own extends Options> extends Pick<AnyVerb, 'description' | 'json'> {
  readonly examples: Readonly<Record<string, string>>
  /** `mayfly helper NAME` */
  readonly name: string
  readonly options?: Own
  /** What --print prints. */
  readonly printed?: string
  /** How long before its end a credential is renewed. */
  readonly renewBeforeMs: number
  /**
   * Makes what turns a credential into text or JSON for the program. Called before anything is asked: throws `CliError`
   * (usage) for an unknown form.
   */
  answer(context: Context, options: ValuesOf<Own>): (credential: HeldCredential) => string | object
  /** Hears the answer before it is printed. */
  keep?(context: Context, answer: string | object): Promise<void>
  /** What the program reads from standard output in place of an answer; the exit code is not 0 either. */
  refusal?(failure: Failure): object
  /** With --print or --write: configures the program to run these words. */
  configure?(context: Context, call: readonly string[], options: ValuesOf<Own>): Promise<void>
}

/** The verb of a format: asks for a credential, or answers from the cache. */
export function helperVerb<const Own extends Options = Readonly<Record<never, never>>>(format: Format<Own>) {
  const print = format.printed === undefined ? {} : { print: flag(format.printed) }
  return defineVerb({
    description: format.description,
    options: { ...REQUEST_OPTIONS, ...print, ...(format.options as Own) } as Options,
    examples: format.examples,
    ...(format.json === undefined ? {} : { json: format.json }),
    exits: [3, 4, 5],
    run: async (context, options) => {
      try {
        await answer(context, format, options as Asked<Own>)
      } catch (error) {
        const failure = failureOf(error)
        if (format.refusal !== undefined && failure.message !== '')
          await context.out.json(format.refusal(failure))
        throw error
      }
    },
  })
}

type Asked<Own> = RequestOptions & ValuesOf<Own> & { readonly print?: boolean; readonly write?: string }

async function answer<Own extends Options>(context: Context, format: Format<Own>, options: Asked<Own>) {
  const toAnswer = format.answer(context, options)
  const request = requestOf(options)
  const session = await openAgentSession(context)
  if (format.configure !== undefined && (options.print === true || options.write !== undefined)) {
    const words = ['helper', format.name, ...requestFlags(options)]
    return format.configure(context, callOf(context, session, words), options)
  }
  const made = await heldAnswer(context, session, request, format.renewBeforeMs, toAnswer)
  await format.keep?.(context, made)
  return typeof made === 'string' ? context.out.result(made) : context.out.json(made)
}
