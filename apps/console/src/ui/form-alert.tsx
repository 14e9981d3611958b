/** A fault that belongs to no single field. */
export function FormAlert({ text }: { text: string | undefined }) {
  if (!text) return null;
  return (
    <p role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-xs text-bad">
      {text}
    </p>
  );
}
