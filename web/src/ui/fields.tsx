import { type ComponentProps, type ReactNode, useId } from 'react'

interface FieldProps {
  readonly label: string
  readonly hint?: ReactNode
  readonly error?: string | undefined
  readonly children: (control: { id: string; 'aria-describedby': string | undefined }) => ReactNode
}

/** A label, a control and what helps to fill it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId()
  const described = hint !== undefined || error !== undefined
  return (
    <div className="grid content-start gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({ id, 'aria-describedby': described ? `${id}-hint` : undefined })}
      {described && (
        <div id={`${id}-hint`} className="text-xs text-muted">
          {error !== undefined ? <span className="text-bad">{error}</span> : hint}
        </div>
      )}
    </div>
  )
}

const BOX =
  'w-full rounded-sm border border-edge bg-surface px-2.5 text-base text-ink aria-invalid:border-bad disabled:opacity-60'

export const Input = (props: ComponentProps<'input'>) => (
  <input autoComplete="off" spellCheck={false} {...props} className={`${BOX} h-9 ${props.className ?? ''}`} />
)
export const TextArea = (props: ComponentProps<'textarea'>) => (
  <textarea spellCheck={false} rows={4} {...props} className={`${BOX} py-1.5 ${props.className ?? ''}`} />
)
export const Select = (props: ComponentProps<'select'>) => (
  <select {...props} className={`${BOX} h-9 ${props.className ?? ''}`} />
)

type TextFieldProps = Omit<FieldProps, 'children'> & Omit<ComponentProps<'input'>, 'children'>
export function TextField({ label, hint, error, ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => <Input {...input} {...control} aria-invalid={error !== undefined || undefined} />}
    </Field>
  )
}

type CheckFieldProps = { readonly label: ReactNode; readonly hint?: ReactNode } & ComponentProps<'input'>
export function CheckField({ label, hint, ...input }: CheckFieldProps) {
  const id = useId()
  return (
    <div className="grid grid-cols-[auto_1fr] gap-x-2">
      <input {...input} type="checkbox" id={id} className="mt-1 size-4" />
      <label htmlFor={id}>{label}</label>
      {hint !== undefined && <div className="col-start-2 text-xs text-muted">{hint}</div>}
    </div>
  )
}

/** Scopes, one in a line. */
export const linesOf = (text: string): string[] =>
  text
    .split(/[\s,]+/)
    .map((one) => one.trim())
    .filter((one) => one !== '')
