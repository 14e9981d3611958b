import { zodResolver } from '@hookform/resolvers/zod';
import { apiSchemas } from '@weir/domain';
import { useForm } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { z } from 'zod';
import { api, ifMatch } from '../../api/client.js';
import { Dialog } from '../../ui/dialog.js';
import { Field, Input } from '../../ui/field.js';
import { FormDialog } from '../../ui/form-dialog.js';
import { faultText, useSaving } from '../../ui/form-faults.js';
import { ErrorState, Loading } from '../../ui/states.js';

const formSchema = z.object({
  name: apiSchemas.departmentCreateBody.shape.name,
  costCenter: z.string().trim().max(60),
});
type Values = z.output<typeof formSchema>;

/** Adds a department below `parent`, or edits the one with `id`. */
export function DepartmentDialog(
  props:
    | { parent: { id: string | null; name: string }; onClose: () => void }
    | { id: string; onClose: () => void },
) {
  const { t } = useTranslation();
  if ('parent' in props) {
    return (
      <DepartmentForm
        title={t('org.addDepartmentTo', { name: props.parent.name })}
        target={{ parentId: props.parent.id }}
        initial={{ name: '', costCenter: '' }}
        onClose={props.onClose}
      />
    );
  }
  return <EditDepartment id={props.id} onClose={props.onClose} />;
}

function EditDepartment({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation();
  const department = api.useQuery(
    'get',
    '/api/v1/departments/{id}',
    { params: { path: { id } } },
    // Read once: what comes later must not change a form that is being filled in.
    { staleTime: Infinity, gcTime: 0 },
  );
  if (!department.data) {
    return (
      <Dialog title={t('action.edit')} onClose={onClose}>
        {department.error ? <ErrorState error={department.error} /> : <Loading />}
      </Dialog>
    );
  }
  const { name, costCenter, version } = department.data;
  return (
    <DepartmentForm
      title={t('org.editDepartment', { name })}
      target={{ id, version }}
      initial={{ name, costCenter: costCenter ?? '' }}
      onClose={onClose}
    />
  );
}

function DepartmentForm({
  title,
  target,
  initial,
  onClose,
}: {
  title: string;
  target: { parentId: string | null } | { id: string; version: number };
  initial: Values;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const form = useForm({ resolver: zodResolver(formSchema), defaultValues: initial });
  const { errors } = form.formState;
  const saving = useSaving(form, onClose);
  const create = api.useMutation('post', '/api/v1/departments', saving);
  const patch = api.useMutation('patch', '/api/v1/departments/{id}', saving);
  const save = form.handleSubmit(({ name, costCenter }) => {
    const body = { name, costCenter: costCenter === '' ? null : costCenter };
    if ('parentId' in target) create.mutate({ body: { ...body, parentId: target.parentId } });
    else {
      patch.mutate({
        params: { path: { id: target.id }, header: ifMatch(target.version) },
        body,
      });
    }
  });
  return (
    <FormDialog
      title={title}
      busy={create.isPending || patch.isPending}
      fault={errors.root?.message}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Field label={t('field.name')} error={faultText(errors.name, t('field.required'))}>
        {(props) => <Input autoFocus {...props} {...form.register('name')} />}
      </Field>
      <Field
        label={t('field.costCenter')}
        hint={t('field.optional')}
        error={errors.costCenter?.message}
      >
        {(props) => <Input {...props} {...form.register('costCenter')} />}
      </Field>
    </FormDialog>
  );
}
