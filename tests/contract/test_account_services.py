"""What the account keeps where moto keeps nothing, asked for as people do."""

import pytest

from tests.contract.account_stage import Json, Stage, code_of
from tests.contract.test_account_functions import canary, function

pytestmark = pytest.mark.loopback


def test_code_deploy_refuses_what_is_there_already_and_what_is_not(stage: Stage) -> None:
    stage.deploy("s", canary("1", "half"))
    codedeploy = stage.client("codedeploy")
    [name] = codedeploy.list_applications()["applications"]
    [group] = codedeploy.list_deployment_groups(applicationName=name)["deploymentGroups"]
    which: Json = {"applicationName": name, "deploymentGroupName": group, "serviceRoleArn": "arn"}
    calls = {
        "ApplicationAlreadyExistsException": lambda: codedeploy.create_application(applicationName=name),
        "ApplicationDoesNotExistException": lambda: codedeploy.create_deployment_group(
            **{**which, "applicationName": "none"}
        ),
        "DeploymentConfigAlreadyExistsException": lambda: codedeploy.create_deployment_config(
            deploymentConfigName="half"
        ),
        "DeploymentConfigDoesNotExistException": lambda: codedeploy.get_deployment_config(deploymentConfigName="none"),
        "DeploymentConfigInUseException": lambda: codedeploy.delete_deployment_config(deploymentConfigName="half"),
        "DeploymentGroupAlreadyExistsException": lambda: codedeploy.create_deployment_group(**which),
        "DeploymentGroupDoesNotExistException": lambda: codedeploy.get_deployment_group(
            applicationName=name, deploymentGroupName="none"
        ),
    }
    assert {code: code_of(call) for code, call in calls.items()} == {code: code for code in calls}
    changed = canary("1")
    assert stage.deploy("s", changed)["StackStatus"] == "UPDATE_COMPLETE"
    found = codedeploy.get_deployment_group(applicationName=name, deploymentGroupName=group)["deploymentGroupInfo"]
    assert found["deploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent5Minutes"


def test_a_log_group_must_be_there_to_be_subscribed_to(stage: Stage) -> None:
    logs = stage.client("logs")
    said: Json = {"filterName": "f", "filterPattern": "", "destinationArn": "arn:aws:lambda:us-east-1:1:function:a"}
    assert code_of(lambda: logs.put_subscription_filter(logGroupName="g", **said)) == "ResourceNotFoundException"
    logs.create_log_group(logGroupName="g")
    logs.put_subscription_filter(logGroupName="g", **said)
    [found] = logs.describe_subscription_filters(logGroupName="g")["subscriptionFilters"]
    assert found["filterName"] == "f"
    logs.delete_subscription_filter(logGroupName="g", filterName="f")
    delete = logs.delete_subscription_filter
    assert code_of(lambda: delete(logGroupName="g", filterName="f")) == "ResourceNotFoundException"


def test_a_security_group_is_shown_with_its_rules_and_held_by_its_users(stage: Stage) -> None:
    ec2 = stage.client("ec2")
    group = ec2.create_security_group(GroupName="g", Description="d")["GroupId"]
    [found] = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert (found["IpPermissions"], len(found["IpPermissionsEgress"])) == ([], 1)
    assert ec2.describe_security_groups()["SecurityGroups"]
    made = ec2.create_vpc_endpoint(VpcId="vpc-1", ServiceName="s", SecurityGroupIds=[group])["VpcEndpoint"]
    assert code_of(lambda: ec2.delete_security_group(GroupId=group)) == "DependencyViolation"
    ec2.delete_vpc_endpoints(VpcEndpointIds=[made["VpcEndpointId"]])
    ec2.delete_security_group(GroupId=group)
    assert code_of(lambda: ec2.delete_security_group(GroupId=group)) == "InvalidGroup.NotFound"
    rule: Json = {"IpProtocol": "-1"}
    authorize = ec2.authorize_security_group_ingress
    assert code_of(lambda: authorize(GroupId=group, IpPermissions=[rule])) == "InvalidGroup.NotFound"


def test_whether_a_function_may_call_itself_by_messages_is_what_the_template_says_last(stage: Stage) -> None:
    asked = stage.client("lambda").get_function_recursion_config
    for number, said in enumerate(("Allow", "Terminate", "Allow", None)):
        stage.deploy("s", function(str(number), **({"RecursiveLoop": said} if said else {})))
        assert asked(FunctionName="tick")["RecursiveLoop"] == (said or "Terminate")


def test_a_function_is_shown_as_people_ask_for_it(stage: Stage) -> None:
    stage.deploy("s", function("1", ReservedConcurrentExecutions=3, Timeout=9))
    lambdas = stage.client("lambda")
    assert lambdas.get_function(FunctionName="tick")["Concurrency"] == {"ReservedConcurrentExecutions": 3}
    assert lambdas.get_function_concurrency(FunctionName="tick")["ReservedConcurrentExecutions"] == 3
    assert lambdas.get_function_recursion_config(FunctionName="tick")["RecursiveLoop"] == "Terminate"
    found = lambdas.get_function_configuration(FunctionName="tick", Qualifier="live")
    assert (found["Timeout"], found["Version"]) == (9, "1")
    assert [one["Name"] for one in lambdas.list_aliases(FunctionName="tick")["Aliases"]] == ["live"]
    again: Json = {"FunctionName": "tick", "Role": found["Role"], "Code": {"ZipFile": b""}}
    assert code_of(lambda: lambdas.create_function(**again)) == "ResourceConflictException"
    alias: Json = {"FunctionName": "tick", "Name": "live", "FunctionVersion": "1"}
    assert code_of(lambda: lambdas.create_alias(**alias)) == "ResourceConflictException"
    assert code_of(lambda: lambdas.get_alias(FunctionName="tick", Name="none")) == "ResourceNotFoundException"
    publish = lambdas.publish_version
    assert code_of(lambda: publish(FunctionName="tick", CodeSha256="x")) == "InvalidParameterValueException"
    put = lambdas.put_function_event_invoke_config
    put(FunctionName="tick", Qualifier="live", MaximumRetryAttempts=1)
    configs = lambdas.list_function_event_invoke_configs(FunctionName="tick")["FunctionEventInvokeConfigs"]
    assert [one["MaximumRetryAttempts"] for one in configs] == [1]
    lambdas.delete_function_event_invoke_config(FunctionName="tick", Qualifier="live")
    get = lambdas.get_function_event_invoke_config
    assert code_of(lambda: get(FunctionName="tick", Qualifier="live")) == "ResourceNotFoundException"
    said: Json = {"FunctionName": "tick", "StatementId": "a", "Action": "lambda:InvokeFunction", "Principal": "1"}
    lambdas.add_permission(**said)
    assert code_of(lambda: lambdas.add_permission(**said)) == "ResourceConflictException"
    layer = lambdas.publish_layer_version(LayerName="l", Content={"ZipFile": b"zip"})
    assert lambdas.get_layer_version(LayerName="l", VersionNumber=1)["LayerVersionArn"] == layer["LayerVersionArn"]
