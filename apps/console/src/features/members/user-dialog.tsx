import { zodResolver } from '@hookform/resolvers/zod';
import { apiSchemas, roles } from '@weir/domain';
import { useForm, useWatch } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { z } from 'zod';
import { api, ifMatch } from '../../api/client.js';
import type { UserRow } from '../../api/types.js';
import { useDenied } from '../../app/me.js';
import { Dialog } from '../../ui/dialog.js';
import { Field, Input, Select } from '../../ui/field.js';
import { FormDialog } from '../../ui/form-dialog.js';
import { faultText, useSaving } from '../../ui/form-faults.js';
import { Segmented } from '../../ui/segmented.js';
import { ErrorState, Loading } from '../../ui/states.js';

/** The shortest password that the API takes. */
const passwordMin = 12;
const formSchema = z.object({
  departmentId: z.uuid(),
  kind: z.enum(['person', 'service']),
  name: apiSchemas.userCreateBody.shape.name,
  email: z.union([z.literal(''), z.email().max(200)]),
  role: z.enum(roles),
  password: z.union([z.literal(''), z.string().min(passwordMin).max(200)]),
});
type Values = z.output<typeof formSchema>;

/** Adds a user to a department, or edits the one with `id`. */
export function UserDialog({
  id,
  departmentId,
  onClose,
}: {
  id?: string;
  departmentId?: string;
  onClose: () => void;
}) {
  if (id !== undefined) return <EditUser id={id} onClose={onClose} />;
  return (
    <UserForm
      row={null}
      initial={{
        departmentId: departmentId ?? '',
        kind: 'person',
        name: '',
        email: '',
        role: 'member',
        password: '',
      }}
      onClose={onClose}
    />
  );
}

function EditUser({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation();
  const user = api.useQuery(
    'get',
    '/api/v1/users/{id}',
    { params: { path: { id } } },
    // Read once: what comes later must not change a form that is being filled in.
    { staleTime: Infinity, gcTime: 0 },
  );
  if (!user.data) {
    return (
      <Dialog title={t('action.edit')} onClose={onClose}>
        {user.error ? <ErrorState error={user.error} /> : <Loading />}
      </Dialog>
    );
  }
  const { departmentId, kind, name, email, role } = user.data;
  return (
    <UserForm
      row={user.data}
      initial={{ departmentId, kind, name, email: email ?? '', role, password: '' }}
      onClose={onClose}
    />
  );
}

function UserForm({
  row,
  initial,
  onClose,
}: {
  row: UserRow | null;
  initial: Values;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const denied = useDenied()('members.write');
  const departments = useDepartments();
  const form = useForm({ resolver: zodResolver(formSchema), defaultValues: initial });
  const { errors } = form.formState;
  const kind = useWatch({ control: form.control, name: 'kind' });
  const saving = useSaving(form, onClose);
  const create = api.useMutation('post', '/api/v1/users', saving);
  const patch = api.useMutation('patch', '/api/v1/users/{id}', saving);
  const save = form.handleSubmit((values) => {
    const email = values.email === '' ? null : values.email;
    if (row === null) {
      const password = values.password === '' || kind === 'service' ? null : values.password;
      create.mutate({
        body: { ...values, email: kind === 'service' ? null : email, password },
      });
      return;
    }
    // Only what was changed is sent, so that a role that one may not set is not set.
    patch.mutate({
      params: { path: { id: row.id }, header: ifMatch(row.version) },
      body: {
        ...(values.name !== initial.name ? { name: values.name } : {}),
        ...(values.email !== initial.email ? { email } : {}),
        ...(values.role !== initial.role ? { role: values.role } : {}),
        ...(values.departmentId !== initial.departmentId
          ? { departmentId: values.departmentId }
          : {}),
        ...(values.password !== '' ? { password: values.password } : {}),
      },
    });
  });

  return (
    <FormDialog
      title={row ? t('members.edit', { name: row.name }) : t('members.add')}
      busy={create.isPending || patch.isPending}
      fault={errors.root?.message}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      {!row && (
        <Segmented
          label={t('members.kind')}
          value={kind}
          options={[
            { value: 'person', label: t('members.person') },
            { value: 'service', label: t('members.service') },
          ]}
          onChange={(value) => form.setValue('kind', value)}
          className="self-start"
        />
      )}
      <Field label={t('field.name')} error={faultText(errors.name, t('field.required'))}>
        {(props) => <Input autoFocus {...props} {...form.register('name')} />}
      </Field>
      <Field
        label={t('members.department')}
        error={faultText(errors.departmentId, t('field.required'))}
      >
        {(props) => (
          <Select
            options={[
              ...(initial.departmentId === '' ? [{ value: '', label: t('field.choose') }] : []),
              ...departments,
            ]}
            {...props}
            {...form.register('departmentId')}
          />
        )}
      </Field>
      {kind === 'person' && (
        <>
          <Field
            label={t('field.email')}
            hint={t('members.emailHint')}
            error={faultText(errors.email, t('signIn.emailFault'))}
          >
            {(props) => (
              <Input type="email" autoComplete="off" {...props} {...form.register('email')} />
            )}
          </Field>
          <Field
            label={t('members.role')}
            hint={denied ?? undefined}
            error={faultText(errors.role, t('field.required'))}
          >
            {(props) => (
              <Select
                options={roles.map((role) => ({
                  value: role,
                  label: t(`role.${role}`),
                  disabled: denied !== null && role !== initial.role,
                }))}
                {...props}
                {...form.register('role')}
              />
            )}
          </Field>
          <Field
            label={t(row ? 'members.newPassword' : 'signIn.password')}
            hint={t(row ? 'members.newPasswordHint' : 'members.passwordHint', {
              min: passwordMin,
            })}
            error={faultText(errors.password, t('members.passwordFault', { min: passwordMin }))}
          >
            {(props) => (
              <Input
                type="password"
                autoComplete="new-password"
                {...props}
                {...form.register('password')}
              />
            )}
          </Field>
        </>
      )}
    </FormDialog>
  );
}

/** All departments that the user may see, indented by depth, for a select. */
export function useDepartments(): { value: string; label: string }[] {
  const { data } = api.useQuery('get', '/api/v1/organisation', {}, { staleTime: 30_000 });
  const depths = new Map<string, number>();
  return (data?.nodes ?? []).flatMap((node) => {
    if (node.level !== 'department') return [];
    const depth = (depths.get(node.parentId ?? '') ?? -1) + 1;
    depths.set(node.id, depth);
    return [{ value: node.id, label: `${'\u2003'.repeat(depth)}${node.name}` }];
  });
}
